"""Settings > Audit: who changed what, when and from where; rows are only ever added."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import uncached
from dashboard.ui.selectors.audit import EXPORTED, AuditFilter, audit_choices, audit_page, audit_rows, audit_said
from dashboard.ui.views.model import whole_number

COLUMNS = ("at", "who", "action", "subject", "before", "after", "address")


@require_safe
@project_page(Role.ADMIN)
def audit(request: ProjectRequest) -> HttpResponse:
    """A page of the record."""
    wanted = _wanted(request)
    page = audit_page(project=request.project, wanted=wanted, number=whole_number(request.GET.get("page")) or 1)
    actions, people = audit_choices(project=request.project)
    context = {
        "project": request.project,
        "page": page,
        "rows": [(row, audit_said(row.before), audit_said(row.after)) for row in page],
        "wanted": wanted,
        "query": urlencode(wanted.query),
        "actions": actions,
        "people": people,
        "exported": EXPORTED,
    }
    return uncached(render(request, "ui/settings/audit.html", context))


@require_safe
@project_page(Role.ADMIN)
def audit_csv(request: ProjectRequest) -> HttpResponse:
    """The rows that the filter finds, newest first, up to a limit that the page names."""
    rows = audit_rows(project=request.project, wanted=_wanted(request))[:EXPORTED]
    lines = [
        (row.at.isoformat(), row.actor_name, row.action, row.subject, audit_said(row.before), audit_said(row.after), row.address)
        for row in rows.iterator()
    ]
    return uncached(csv_response([COLUMNS, *lines], f"audit-{request.project.slug}.csv"))


def _wanted(request: ProjectRequest) -> AuditFilter:
    return AuditFilter(**{name: request.GET.get(name, "").strip()[:200] for name in ("action", "who", "about")})
