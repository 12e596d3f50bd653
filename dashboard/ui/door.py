"""The one way into every page of a project: signed in, a member, with at least the role it asks for."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

from dashboard.accounts.models import User
from dashboard.projects.models import Project, Role
from dashboard.projects.selectors import project_or_404

P = ParamSpec("P")


class ProjectRequest(HttpRequest):
    """A request that came through the door."""

    project: Project
    user: User


def project_page(
    at_least: Role = Role.VIEWER,
) -> Callable[[Callable[Concatenate[ProjectRequest, P], HttpResponse]], Callable[..., HttpResponse]]:
    """Turns a view of (request, ...) into one of (request, slug, ...); `request.project` is the project the person may see."""

    def wrap(view: Callable[Concatenate[ProjectRequest, P], HttpResponse]) -> Callable[..., HttpResponse]:
        @login_required
        @wraps(view)
        def through(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponse:
            inside = cast(ProjectRequest, request)
            if any("\0" in text for given in (request.GET, request.POST) for name, texts in given.lists() for text in (name, *texts)):
                raise BadRequest("A text holds the character 0, which PostgreSQL does not store.")
            inside.project = project_or_404(inside.user, slug, at_least)
            return view(inside, *args, **kwargs)

        return through

    return wrap
