"""Baseline choices of operators on the Versions tab: pin or accept a version, or end a choice."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.alerts.services import AlertActionError, acceptance_undo
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.regressions.baseline_choices import (
    ACCEPT,
    ChoiceError,
    baseline_choice_end,
    baseline_choose,
)
from dashboard.regressions.models import BaselineChoice
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.pages.model.lookup import model_or_404


@require_POST
@project_page(Role.OPERATOR)
def baseline_set(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Pins or accepts a version."""
    model, environment = model_or_404(request, model_id), request.POST.get("environment", "")[:64]
    try:
        choice = baseline_choose(
            model=model,
            environment=environment,
            version=request.POST.get("version", "").strip(),
            kind=request.POST.get("kind", ""),
            note=request.POST.get("note", ""),
            actor=request.user,
            address=request.META.get("REMOTE_ADDR"),
        )
    except ChoiceError as error:
        messages.error(request, str(error))
    else:
        accepted = choice.kind == ACCEPT
        done = "accepted as new baseline" if accepted else "pinned"
        undo = reverse("baseline_undo", args=[request.project.slug, model_id, choice.pk])
        messages.success(
            request,
            f"{choice.version.name} {done}. Later versions are compared with it.",
            extra_tags=undo if accepted else "",
        )
    return _redirect_to_versions(request, model_id, environment)


@require_POST
@project_page(Role.OPERATOR)
def baseline_end(request: ProjectRequest, model_id: int, choice_id: int) -> HttpResponse:
    """Returns to automatic selection of the baseline."""
    choice = _choice_or_404(request, model_id, choice_id)
    baseline_choice_end(choice=choice, actor=request.user, address=request.META.get("REMOTE_ADDR"))
    messages.success(request, "The baseline is selected automatically again.")
    return _redirect_to_versions(request, model_id, choice.environment)


@require_POST
@project_page(Role.OPERATOR)
def baseline_undo(request: ProjectRequest, model_id: int, choice_id: int) -> HttpResponse:
    """Undoes an acceptance, with the alerts that it closed."""
    choice = _choice_or_404(request, model_id, choice_id)
    try:
        acceptance_undo(choice=choice, user=request.user, address=request.META.get("REMOTE_ADDR"))
    except AlertActionError as error:
        messages.error(request, error.sentence)
    else:
        messages.success(request, "The acceptance was undone.")
    return _redirect_to_versions(request, model_id, choice.environment)


def _choice_or_404(request: ProjectRequest, model_id: int, choice_id: int) -> BaselineChoice:
    rows = for_project(BaselineChoice, request.project).select_related("model", "version")
    choice = rows.filter(pk=choice_id, model_id=model_id).first()
    if choice is None:
        raise Http404("Baseline choice not found.")
    return choice


def _redirect_to_versions(request: ProjectRequest, model_id: int, environment: str) -> HttpResponse:
    return redirect(
        reverse("model_versions", args=[request.project.slug, model_id])
        + "?"
        + urlencode({"env": environment})
    )
