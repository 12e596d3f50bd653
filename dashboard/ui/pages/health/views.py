"""The Health page: state of the compilewatch installation."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.projects.selectors import list_projects
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.pages.health.queries import read_health_data


@require_safe
@login_required
def health_home(request: HttpRequest) -> HttpResponse:
    """Redirects to the Health page of the person's first project; the installation part is the same
    in each project."""
    project = list_projects(request.user).first()
    return redirect("health", project.slug) if project else redirect("home")


@require_safe
@project_page()
def health(request: ProjectRequest) -> HttpResponse:
    """State of the installation, and the reports and notifications of this project."""
    context = {"project": request.project, "page": read_health_data(project=request.project)}
    part = render_to_string("ui/health/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request, "ui/health/page.html", context | {"part": part, "etag": fragment_etag(part)}
        )
    )
