"""The Version page: start, compilations and traffic of one version, as JSON and CSV too, and the
budgets of its model."""

from __future__ import annotations

import math
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.fleet.budgets import (
    DEFAULT_STALLED_SHARE,
    BudgetError,
    Budgets,
    budgets_set,
    check_budget,
    own_budgets,
    project_budgets,
)
from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.model.views import model_or_404, parse_whole_number
from dashboard.ui.pages.version.presenter import (
    VersionPage,
    start_table,
    version_json,
    version_page,
    version_table,
)
from dashboard.ui.pages.version.queries import read_version_data

ALL_MODELS = "project"
UNITS = {"cold_start": 1.0, "served": 100.0, "stalled": 100.0}
LABELS = {"cold_start": "Cold start", "served": "Served compiled", "stalled": "Stalled calls"}


@require_safe
@project_page()
def version(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """The page."""
    page = _page(request, model_id, version_id)
    return render(request, "ui/version/page.html", _context(request, page))


@require_safe
@project_page()
def version_as_json(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """Content of the page as data."""
    return JsonResponse(version_json(_page(request, model_id, version_id)))


@require_safe
@project_page()
def version_as_csv(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """One row per compilation, or one row per phase of the drawn start."""
    if request.GET.get("chart") == "start":
        return csv_response(
            start_table(_page(request, model_id, version_id)),
            f"version-{version_id}-cold-start.csv",
        )
    return csv_response(
        version_table(_page(request, model_id, version_id)),
        f"version-{version_id}-compilations.csv",
    )


@require_POST
@project_page(Role.OPERATOR)
def version_budgets(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """Sets the budgets of the model, or of all models without their own: cold start, compiled calls
    and stalled calls.

    An empty field means no budget; for stalled calls, it means the default."""
    model = model_or_404(request, model_id)
    if not model.versions.filter(pk=version_id).exists():
        raise Http404("Version not found for this model.")
    whole = request.POST.get("for") == ALL_MODELS
    back = reverse("version", args=[request.project.slug, model_id, version_id])
    try:
        budgets = Budgets(*(_number(request, name, unit) for name, unit in UNITS.items()))
    except BudgetError as error:
        messages.error(request, f"Not saved. {error}")
        return redirect(back)
    changed = budgets_set(
        project=request.project,
        model=None if whole else model,
        budgets=budgets,
        actor=request.user,
        address=request.META.get("REMOTE_ADDR"),
    )
    messages.success(request, "Saved." if changed else "No changes to save.")
    return redirect(back)


def _number(request: ProjectRequest, name: str, unit: float) -> float | None:
    text = request.POST.get(name, "").strip()[:40].replace(",", ".")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BudgetError(
            name,
            f"{LABELS[name]} is {text!r}. Enter a number, or leave the field empty for no budget.",
        )
    return check_budget(name, round(value / unit, 9))


def _page(request: ProjectRequest, model_id: int, version_id: int) -> VersionPage:
    query = request.GET
    facts = read_version_data(
        project_id=request.project.pk,
        model_id=model_id,
        version_id=version_id,
        environment=query.get("env", ""),
    )
    if facts is None:
        raise Http404("Version not found in this project, or it never ran.")
    numbers = {
        name: parse_whole_number(query.get(name)) for name in ("instance", "replicas", "at_once")
    }
    return version_page(facts, **numbers)


def _context(request: ProjectRequest, page: VersionPage) -> dict[str, Any]:
    query, facts = request.GET, page.facts
    own, below = own_budgets(facts.model), project_budgets(facts.model.project.settings)
    return {
        "page": page,
        "facts": facts,
        "model": facts.model,
        "version": facts.version,
        "standing": facts.standing,
        "said": facts.standing.said,
        "baseline": facts.standing.baseline,
        "query": query.urlencode(),
        "environments": [
            (name, replace_query(query, env=name, instance=""), name == facts.environment)
            for name in facts.standing.environments
        ],
        "choose": {
            row.process.id: replace_query(query, instance=str(row.process.id))
            for row in page.starts.rows
        },
        "own": _format_budgets(own),
        "below": _format_budgets(below),
        "usual_stalled": _percent(DEFAULT_STALLED_SHARE),
    }


def _format_budgets(budgets: Budgets) -> dict[str, float | None]:
    return {
        "cold_start": budgets.cold_start,
        "served": _percent(budgets.served),
        "stalled": _percent(budgets.stalled),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 6)
