"""28-day trend of a model: a part of the Model page that loads when it is shown, a page, and its
rows as files."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.ui.charts.period_comparison.text import (
    PeriodRow,
    PeriodSummary,
    PeriodValues,
    summarize_periods,
)
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.model.queries import read_model_verdicts
from dashboard.ui.pages.model.views import model_or_404
from dashboard.ui.pages.period_comparison.queries_model import read_period_data

COLUMNS = ("number", "region", *PeriodValues._fields, "how")


@require_safe
@project_page()
def period_comparison(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The last 28 days compared with the previous 28 days."""
    part = (
        "ui/period_comparison/model_periods.html"
        if request.headers.get("HX-Request")
        else "ui/period_comparison/model_periods_page.html"
    )
    return mark_uncached(render(request, part, _context(request, model_id)))


@require_safe
@project_page()
def period_comparison_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Content of the page as data; `unit` is the unit of `before` and `after`."""
    found: PeriodSummary = _context(request, model_id)["told"]
    said = {"answer": found.answer, "sentences": found.sentences, "compared": found.compared}
    return mark_uncached(JsonResponse(said | {"rows": [_flat(row) for row in found.rows]}))


@require_safe
@project_page()
def period_comparison_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """One row per metric."""
    found: PeriodSummary = _context(request, model_id)["told"]
    return mark_uncached(
        csv_response(
            [COLUMNS, *(list(_flat(row).values()) for row in found.rows)],
            f"model-{model_id}-weeks.csv",
        )
    )


def _flat(row: PeriodRow) -> dict[str, Any]:
    return {
        "number": row.name,
        "region": row.region or None,
        **row.values._asdict(),
        "how": row.how,
    }


def _context(request: ProjectRequest, model_id: int) -> dict[str, Any]:
    model, query = model_or_404(request, model_id), request.GET
    standing = read_model_verdicts(model=model, environment=query.get("env", ""))
    facts = read_period_data(
        model=model, environment=standing.environment, today=int(clock.unix() // 86400)
    )
    return {
        "model": model,
        "environment": standing.environment,
        "environments": [
            (name, replace_query(query, env=name), name == standing.environment)
            for name in standing.environments
        ],
        "told": summarize_periods(facts.calls, facts.before, facts.after),
        "query": query.urlencode(),
    }
