"""Access to the pages of a project: requires a signed-in member with the required role and, for
sensitive pages, a recent password check."""

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
    """A request that passed the access check."""

    project: Project
    user: User
    membership: Membership
    """The person's membership in `project`."""
    memberships: list[Membership]
    """All memberships of the person."""


def project_page(
    at_least: Role = Role.VIEWER,
    *,
    sure: bool = False,
) -> Callable[
    [Callable[Concatenate[ProjectRequest, P], HttpResponse]], Callable[..., HttpResponse]
]:
    """Wraps a view of (request, ...) as a view of (request, slug, ...) and sets `request.project`.

    With `sure`, the person must have given a password or a code within the last minutes. Keys,
    channels, roles and the kill switch require this."""

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
                raise BadRequest(
                    "A field contains the NUL character, which PostgreSQL cannot store."
                )
            _enter(inside, slug, at_least)
            if sure:
                require_reauthentication(inside)
            return view(inside, *args, **kwargs)

        return through

    return wrap


def _enter(request: ProjectRequest, slug: str, at_least: Role) -> None:
    """Raises 404 for people who are not members, and 403 for members whose role is too low.
    Equivalent to `get_project_or_404`, but reads the data of the page layout in the same query."""
    request.memberships = list_memberships(request.user)
    found = next(
        (membership for membership in request.memberships if membership.project.slug == slug), None
    )
    if found is None:
        raise Http404("Project not found.")
    request.membership, request.project = (
        found,
        found.project,
    )  # Set before the role check, so that the 403 page can link to the project.
    if not role_includes(found.role, at_least):
        raise PermissionDenied(f"This requires the {at_least.label} role.")
