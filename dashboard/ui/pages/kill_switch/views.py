"""The Kill switch page of a model: operators temporarily freeze compilation of a version or force
eager, and follow the result."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.kill_switch.services import (
    DURATION_CHOICES_MINUTES,
    KillSwitchError,
    kill_switch_begin,
    kill_switch_end,
)
from dashboard.projects.command_key import command_key_create
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.kill_switch.queries import read_kill_switch_data
from dashboard.ui.pages.model.views import model_or_404, parse_whole_number
from dashboard.ui.pages.setup.views import setup_answer


@require_safe
@project_page()
def kill_switch(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The active override, past overrides, and the form."""
    page = read_kill_switch_data(
        model=model_or_404(request, model_id), environment=request.GET.get("env", "")[:64]
    )
    return mark_uncached(
        render(
            request,
            "ui/kill_switch/page.html",
            {"page": page, "model": page.model, "minutes": DURATION_CHOICES_MINUTES},
        )
    )


@require_POST
@project_page(Role.OPERATOR, sure=True)
def kill_switch_start(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Starts an override, or reports the invalid field."""
    model, environment = model_or_404(request, model_id), request.POST.get("environment", "")[:64]
    version = (
        model.versions.select_related("project", "model")
        .filter(name=request.POST.get("version", ""))
        .first()
    )
    try:
        if version is None:
            raise KillSwitchError("version", "not found.")
        made = kill_switch_begin(
            version=version,
            environment=environment,
            verb=request.POST.get("verb", ""),
            minutes=parse_whole_number(request.POST.get("minutes")) or 0,
            note=request.POST.get("note", ""),
            user=request.user,
            address=request.META.get("REMOTE_ADDR"),
        )
    except KillSwitchError as error:
        messages.error(
            request, f"Kill switch not started. {error.field.capitalize()}: {error.reason}"
        )
    else:
        messages.success(
            request,
            f"One instance of {made.version.name} starts first; the others follow if it stays "
            "healthy.",
        )
    return _redirect_to_switch(request, model_id, environment)


@require_POST
@project_page(Role.OPERATOR)
def kill_switch_stop(request: ProjectRequest, model_id: int, switch_id: int) -> HttpResponse:
    """Reverts an override now."""
    found = (
        for_project(Switch, request.project)
        .filter(pk=switch_id, version__model_id=model_id)
        .first()
    )
    if found is None:
        raise Http404("Override not found.")
    kill_switch_end(switch=found, user=request.user, address=request.META.get("REMOTE_ADDR"))
    messages.success(request, "Cancelled. Instances pick this up with their next report.")
    return _redirect_to_switch(request, model_id, found.environment)


@require_POST
@project_page(Role.ADMIN, sure=True)
def command_key_new(request: ProjectRequest) -> HttpResponse:
    """Creates the keys that sign commands. The symmetric key is shown only once, and the previous
    symmetric key no longer signs commands."""
    text = command_key_create(
        project=request.project, actor=request.user, address=request.META.get("REMOTE_ADDR")
    )
    return setup_answer(request, command_key=text)


def _redirect_to_switch(request: ProjectRequest, model_id: int, environment: str) -> HttpResponse:
    return redirect(
        reverse("switch", args=[request.project.slug, model_id])
        + "?"
        + urlencode({"env": environment})
    )
