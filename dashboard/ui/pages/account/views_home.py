"""Entry page: redirects to the fleet of the only project, or lists the projects."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.http import require_safe

from dashboard.projects.selectors import list_projects, may_create_projects


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Leads to the fleet of the only project, or lists the projects."""
    projects = list(list_projects(request.user))
    if len(projects) == 1:
        return redirect("fleet", projects[0].slug)
    return render(
        request,
        "ui/account/home.html",
        {"choices": projects, "may_make": may_create_projects(request.user)},
    )


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers request the icon here for responses that are not pages, such as JSON."""
    return redirect(static("ui/icon.svg"), permanent=True)
