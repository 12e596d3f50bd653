"""Settings > Audit: changes with person, time and IP address. The log is append-only."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.model.views import parse_whole_number
from dashboard.ui.pages.settings.audit.queries import (
    MAX_EXPORTED,
    AuditFilter,
    format_audit_value,
    list_audit_choices,
    query_audit_entries,
    read_audit_page,
)

COLUMNS = ("at", "who", "action", "subject", "before", "after", "address")


@require_safe
@project_page(Role.ADMIN)
def audit(request: ProjectRequest) -> HttpResponse:
    """A page of the audit log."""
    wanted = _read_filter(request)
    page = read_audit_page(
        project=request.project,
        wanted=wanted,
        number=parse_whole_number(request.GET.get("page")) or 1,
    )
    actions, people = list_audit_choices(project=request.project)
    context = {
        "project": request.project,
        "page": page,
        "rows": [
            (row, format_audit_value(row.before), format_audit_value(row.after)) for row in page
        ],
        "wanted": wanted,
        "query": urlencode(wanted.query),
        "actions": actions,
        "people": people,
        "exported": MAX_EXPORTED,
    }
    return mark_uncached(render(request, "ui/settings/audit.html", context))


@require_safe
@project_page(Role.ADMIN)
def audit_csv(request: ProjectRequest) -> HttpResponse:
    """The rows that match the filter, newest first, up to a limit that the page shows."""
    rows = query_audit_entries(project=request.project, wanted=_read_filter(request))[:MAX_EXPORTED]
    lines = [
        (
            row.at.isoformat(),
            row.actor_name,
            row.action,
            row.subject,
            format_audit_value(row.before),
            format_audit_value(row.after),
            row.address,
        )
        for row in rows.iterator()
    ]
    return mark_uncached(csv_response([COLUMNS, *lines], f"audit-{request.project.slug}.csv"))


def _read_filter(request: ProjectRequest) -> AuditFilter:
    return AuditFilter(
        **{name: request.GET.get(name, "").strip()[:200] for name in ("action", "who", "about")}
    )
