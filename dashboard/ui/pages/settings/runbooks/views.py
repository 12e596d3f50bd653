"""Settings > Runbooks: rollback instructions of each model for the alert page and notifications."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.services.runbooks import RunbookError, runbook_set
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.model.views import parse_whole_number
from dashboard.ui.pages.settings.runbooks.queries import read_runbooks_data


@require_safe
@project_page()
def runbooks(request: ProjectRequest) -> HttpResponse:
    """All runbooks, and the form of one model."""
    return _render(request, parse_whole_number(request.GET.get("model")))


@require_POST
@project_page(Role.ADMIN)
def runbook_save(request: ProjectRequest) -> HttpResponse:
    """Saves a runbook, or reports the invalid field."""
    model_id, given = parse_whole_number(request.POST.get("model")), request.POST
    model = for_project(WatchedModel, request.project).filter(pk=model_id or 0).first()
    if model is None:
        raise Http404("Model not found.")
    try:
        changed = runbook_set(
            model=model,
            text=given.get("text", ""),
            url=given.get("url", ""),
            user=request.user,
            address=request.META.get("REMOTE_ADDR"),
        )
    except RunbookError as error:
        messages.error(request, f"Not saved. {error.sentence}")
        return _render(request, model_id, field=error.field, error=error.sentence, status=400)
    messages.success(
        request,
        f"Saved. The next notification about {model.name} shows this runbook."
        if changed
        else "No changes to save.",
    )
    return redirect(
        reverse("guides", args=[request.project.slug]) + "?" + urlencode({"model": model.pk})
    )


def _render(
    request: ProjectRequest,
    model_id: int | None,
    *,
    field: str = "",
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    page = read_runbooks_data(project=request.project, model_id=model_id)
    guide = page.chosen.guide if page.chosen else None
    given = (
        request.POST
        if field
        else {"text": guide.text if guide else "", "url": guide.url if guide else ""}
    )
    context = {
        "project": request.project,
        "page": page,
        "given": given,
        "field": field,
        "error": error,
    }
    return mark_uncached(render(request, "ui/settings/runbooks.html", context, status=status))
