"""Budgets of a model: limits of its cold start and of its compiled and stalled call shares."""

from __future__ import annotations

import math
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.fleet.budgets import (
    DEFAULT_STALLED_SHARE,
    BudgetError,
    Budgets,
    budgets_set,
    check_budget,
    own_budgets,
    project_budgets,
)
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.pages.model.lookup import model_or_404

ALL_MODELS = "project"
UNITS = {"cold_start": 1.0, "served": 100.0, "stalled": 100.0}
LABELS = {"cold_start": "Cold start", "served": "Served compiled", "stalled": "Stalled calls"}


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
    tab = reverse("model_startup", args=[request.project.slug, model_id])
    back = f"{tab}?version={version_id}"
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


def describe_budgets(model: WatchedModel) -> dict[str, Any]:
    """The values of the form: budgets of the model, those of its project, and the default."""
    return {
        "own": _format_budgets(own_budgets(model)),
        "below": _format_budgets(project_budgets(model.project.settings)),
        "usual_stalled": _percent(DEFAULT_STALLED_SHARE),
    }


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


def _format_budgets(budgets: Budgets) -> dict[str, float | None]:
    return {
        "cold_start": budgets.cold_start,
        "served": _percent(budgets.served),
        "stalled": _percent(budgets.stalled),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 6)
