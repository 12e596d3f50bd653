"""The one way into every page of a project: signed in, a member, with at least the role it asks
for, and lately if it is sensitive."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse

from dashboard.accounts.models import User
from dashboard.accounts.reauthentication import require_reauthentication
from dashboard.projects.models import Project, Role
from dashboard.projects.selectors import role_includes
from dashboard.ui.layout.memberships import Membership, list_memberships

P = ParamSpec("P")


class ProjectRequest(HttpRequest):
    """A request that came through the door."""

    project: Project
    user: User
    membership: Membership
    """The person's in `project`."""
    memberships: list[Membership]
    """All of the person's."""


def project_page(
    at_least: Role = Role.VIEWER,
    *,
    sure: bool = False,
) -> Callable[
    [Callable[Concatenate[ProjectRequest, P], HttpResponse]], Callable[..., HttpResponse]
]:
    """Turns a view of (request, ...) into one of (request, slug, ...); `request.project` is the
    project the person may see.

    With `sure` the person has to have given a password or a code within the last minutes: for keys,
    channels, roles and the switch."""

    def wrap(
        view: Callable[Concatenate[ProjectRequest, P], HttpResponse],
    ) -> Callable[..., HttpResponse]:
        @login_required
        @wraps(view)
        def through(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponse:
            inside = cast(ProjectRequest, request)
            if any(
                "\0" in text
                for given in (request.GET, request.POST)
                for name, texts in given.lists()
                for text in (name, *texts)
            ):
                raise BadRequest("A text holds the character 0, which PostgreSQL does not store.")
            _enter(inside, slug, at_least)
            if sure:
                require_reauthentication(inside)
            return view(inside, *args, **kwargs)

        return through

    return wrap


def _enter(request: ProjectRequest, slug: str, at_least: Role) -> None:
    """404 for whoever is not a member, 403 for a member whose role is too low; `get_project_or_404`
    with what the frame shows read at once."""
    request.memberships = list_memberships(request.user)
    found = next(
        (membership for membership in request.memberships if membership.project.slug == slug), None
    )
    if found is None:
        raise Http404("There is no such project.")
    request.membership, request.project = (
        found,
        found.project,
    )  # before the role, so that the page that refuses leads on
    if not role_includes(found.role, at_least):
        raise PermissionDenied(f"This needs the role {at_least.label.lower()}.")
