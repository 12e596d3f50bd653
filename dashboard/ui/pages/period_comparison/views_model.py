"""28-day trend of a model: a tab, and its rows as files."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.ui.charts.period_comparison.text import (
    PeriodRow,
    PeriodSummary,
    PeriodValues,
    summarize_periods,
)
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.model.header import build_model_header
from dashboard.ui.pages.model.lookup import model_or_404
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts, read_model_verdicts
from dashboard.ui.pages.period_comparison.queries_model import read_period_data

COLUMNS = ("number", "region", *PeriodValues._fields, "how")


@require_safe
@project_page()
def period_comparison(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The last 28 days compared with the previous 28 days."""
    model = model_or_404(request, model_id)
    header = build_model_header(request, model, active="periods", spans=())
    context = _context(request, model, header.standing) | {"header": header}
    return mark_uncached(render(request, "ui/period_comparison/model_periods_page.html", context))


@require_safe
@project_page()
def period_comparison_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Content of the page as data; `unit` is the unit of `before` and `after`."""
    found = _summarize(request, model_id)
    said = {"answer": found.answer, "sentences": found.sentences, "compared": found.compared}
    return mark_uncached(JsonResponse(said | {"rows": [_flat(row) for row in found.rows]}))


@require_safe
@project_page()
def period_comparison_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """One row per metric."""
    found = _summarize(request, model_id)
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


def _summarize(request: ProjectRequest, model_id: int) -> PeriodSummary:
    model = model_or_404(request, model_id)
    standing = read_model_verdicts(model=model, environment=request.GET.get("env", ""))
    told: PeriodSummary = _context(request, model, standing)["told"]
    return told


def _context(
    request: ProjectRequest, model: WatchedModel, standing: ModelVerdicts
) -> dict[str, Any]:
    facts = read_period_data(
        model=model, environment=standing.environment, today=int(clock.unix() // 86400)
    )
    return {
        "model": model,
        "told": summarize_periods(facts.calls, facts.before, facts.after),
        "query": urlencode({"env": standing.environment}),
    }
