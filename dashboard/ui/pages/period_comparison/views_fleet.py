"""28-day trend of the fleet: a part of the Fleet page that loads when it becomes visible, a page,
and its rows as files."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.ui.charts.period_comparison.text import NO_VALUES
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.period_comparison.queries_fleet import (
    FleetPeriodComparison,
    ModelPeriodComparison,
)
from dashboard.ui.pages.period_comparison.queries_fleet import (
    read_fleet_period_comparison as weeks_of,
)

LEVELS = (
    "before_seconds",
    "after_seconds",
    "change_ratio",
    "change_low_ratio",
    "change_high_ratio",
)
COLUMNS = (
    *("model", "environment", "answer", "sentence"),
    *(f"{name}_{field}" for name in ("p50", "p99") for field in LEVELS),
    *("served_before_share", "served_after_share"),
)


@require_safe
@project_page()
def fleet_period_comparison(request: ProjectRequest) -> HttpResponse:
    """The last 28 days of every model compared with the previous 28 days."""
    part = (
        "ui/period_comparison/fleet_weeks.html"
        if request.headers.get("HX-Request")
        else "ui/period_comparison/fleet_weeks_page.html"
    )
    shown = {
        "weeks": _weeks(request),
        "environment": request.GET.get("env", ""),
        "query": request.GET.urlencode(),
    }
    return mark_uncached(render(request, part, shown))


@require_safe
@project_page()
def fleet_period_comparison_json(request: ProjectRequest) -> HttpResponse:
    """Content of the page as data."""
    weeks = _weeks(request)
    said = {"headline": weeks.headline, "counted": weeks.counted}
    return mark_uncached(JsonResponse(said | {"rows": [_flat(row) for row in weeks.models]}))


@require_safe
@project_page()
def fleet_period_comparison_csv(request: ProjectRequest) -> HttpResponse:
    """One row per model, with numbers."""
    rows = [list(_flat(row).values()) for row in _weeks(request).models]
    return mark_uncached(csv_response([COLUMNS, *rows], "fleet-weeks.csv"))


def _weeks(request: ProjectRequest) -> FleetPeriodComparison:
    return weeks_of(
        project=request.project,
        environment=request.GET.get("env", ""),
        today=int(clock.unix() // 86400),
    )


def _flat(row: ModelPeriodComparison) -> dict[str, Any]:
    cells = [
        value
        for number in (row.p50, row.p99)
        for value in (number.values if number else NO_VALUES)[1:]
    ]
    cells += (row.served.values if row.served else NO_VALUES)[1:3]
    return dict(
        zip(
            COLUMNS,
            [row.model.name, row.environment, row.answer, row.sentence, *cells],
            strict=True,
        )
    )
