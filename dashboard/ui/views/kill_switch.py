"""The Switch page of a model: operators freeze a version or run it eager for a while, and everybody sees what became of it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.kill_switch.services import MINUTES, SwitchError, switch_begin, switch_end
from dashboard.projects.command_key import command_key_make
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import uncached
from dashboard.ui.selectors.kill_switch import switch_page
from dashboard.ui.views.model import model_or_404, whole_number
from dashboard.ui.views.setup import setup_answer


@require_safe
@project_page()
def switch(request: ProjectRequest, model_id: int) -> HttpResponse:
    """What is in force, what was, and the form."""
    page = switch_page(model=model_or_404(request, model_id), environment=request.GET.get("env", "")[:64])
    return uncached(render(request, "ui/switch.html", {"page": page, "model": page.model, "minutes": MINUTES}))


@require_POST
@project_page(Role.OPERATOR, sure=True)
def switch_make(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Begins one, or says which field is wrong."""
    model, environment = model_or_404(request, model_id), request.POST.get("environment", "")[:64]
    version = model.versions.select_related("project", "model").filter(name=request.POST.get("version", "")).first()
    try:
        if version is None:
            raise SwitchError("version: there is no such version.")
        made = switch_begin(
            version=version,
            environment=environment,
            verb=request.POST.get("verb", ""),
            minutes=whole_number(request.POST.get("minutes")) or 0,
            note=request.POST.get("note", ""),
            user=request.user,
            address=request.META.get("REMOTE_ADDR"),
        )
    except SwitchError as error:
        field, _, text = str(error).partition(": ")
        messages.error(request, f"Nothing is switched. {field.capitalize()}: {text}")
    else:
        messages.success(request, f"One instance of {made.version.name} is asked first; the others follow when it stays healthy.")
    return _back(request, model_id, environment)


@require_POST
@project_page(Role.OPERATOR)
def switch_stop(request: ProjectRequest, model_id: int, switch_id: int) -> HttpResponse:
    """Takes one back now."""
    found = for_project(Switch, request.project).filter(pk=switch_id, version__model_id=model_id).first()
    if found is None:
        raise Http404("There is no such switch.")
    switch_end(switch=found, user=request.user, address=request.META.get("REMOTE_ADDR"))
    messages.success(request, "It is taken back: instances hear of it with their next report.")
    return _back(request, model_id, found.environment)


@require_POST
@project_page(Role.ADMIN, sure=True)
def command_key_new(request: ProjectRequest) -> HttpResponse:
    """Makes the keys that sign commands. The symmetric one is shown this once, and the one before signs nothing any more."""
    text = command_key_make(project=request.project, actor=request.user, address=request.META.get("REMOTE_ADDR"))
    return setup_answer(request, command_key=text)


def _back(request: ProjectRequest, model_id: int, environment: str) -> HttpResponse:
    return redirect(reverse("switch", args=[request.project.slug, model_id]) + "?" + urlencode({"env": environment}))
