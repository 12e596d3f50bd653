"""The Health page: is compilewatch itself well?"""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.projects.selectors import list_projects
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.selectors.health import read_health_data


@require_safe
@login_required
def health_home(request: HttpRequest) -> HttpResponse:
    """Leads to the page of the person's first project; the line it shows is the same in each."""
    project = list_projects(request.user).first()
    return redirect("health", project.slug) if project else redirect("home")


@require_safe
@project_page()
def health(request: ProjectRequest) -> HttpResponse:
    """The line of the whole installation, and what became of this project's reports and
    messages."""
    context = {"project": request.project, "page": read_health_data(project=request.project)}
    part = render_to_string("ui/health/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request, "ui/health/page.html", context | {"part": part, "etag": fragment_etag(part)}
        )
    )
