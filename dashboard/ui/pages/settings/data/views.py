"""Settings > Data: retention of metrics, and limits on reports."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.projects.models import Role
from dashboard.projects.retention import RetentionError
from dashboard.projects.services import retention_set
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.settings.data.presenter import (
    DataInput,
    data_page,
    days_read,
    explain_days_error,
)


@require_safe
@project_page()
def data(request: ProjectRequest) -> HttpResponse:
    """All retention periods with their bounds, and all limits with their unit."""
    return _render(request)


@require_POST
@project_page(Role.ADMIN)
def data_save(request: ProjectRequest) -> HttpResponse:
    """Saves all fields or none. Errors are shown next to their field."""
    given = days_read(request.POST)
    if not given.errors:
        try:
            retention_set(
                project=request.project,
                changes=given.days,
                actor=request.user,
                address=request.META.get("REMOTE_ADDR"),
            )
        except RetentionError as error:
            given.errors[error.field] = explain_days_error(error.field, error.given, error.expected)
    if given.errors:
        messages.error(request, f"Not saved. {next(iter(given.errors.values()))}")
        return _render(request, given=given, status=400)
    messages.success(
        request,
        "Saved. The next clean-up permanently deletes older data within 1 h.",
    )
    return redirect("data", request.project.slug)


def _render(
    request: ProjectRequest, *, given: DataInput | None = None, status: int = 200
) -> HttpResponse:
    context = {"project": request.project, "page": data_page(request.project, given)}
    return mark_uncached(render(request, "ui/settings/data.html", context, status=status))
