"""Baseline choices of operators on the Versions tab: pin or accept a version, or end a choice."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

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
        done = "accepted as new baseline" if choice.kind == ACCEPT else "pinned"
        messages.success(
            request,
            f"{choice.version.name} {done}. Later versions are compared with it.",
        )
    return _redirect_to_versions(request, model_id, environment)


@require_POST
@project_page(Role.OPERATOR)
def baseline_end(request: ProjectRequest, model_id: int, choice_id: int) -> HttpResponse:
    """Returns to automatic selection of the baseline."""
    choice = (
        for_project(BaselineChoice, request.project).filter(pk=choice_id, model_id=model_id).first()
    )
    if choice is None:
        raise Http404("Baseline choice not found.")
    baseline_choice_end(choice=choice, actor=request.user, address=request.META.get("REMOTE_ADDR"))
    messages.success(request, "The baseline is selected automatically again.")
    return _redirect_to_versions(request, model_id, choice.environment)


def _redirect_to_versions(request: ProjectRequest, model_id: int, environment: str) -> HttpResponse:
    return redirect(
        reverse("model_versions", args=[request.project.slug, model_id])
        + "?"
        + urlencode({"env": environment})
    )
