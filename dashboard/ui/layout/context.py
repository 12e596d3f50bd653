"""Template context of all pages: the project, the person's projects and role, and the number of
open alerts."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from dashboard import __version__
from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.selectors.limits import list_reached_limits
from dashboard.projects.cardinality_limits import describe_limit, read_limits
from dashboard.projects.models import Project, Role
from dashboard.projects.selectors import role_includes
from dashboard.ui.layout.memberships import Membership
from dashboard.ui.layout.navigation import build_help_link, build_navigation

THEMES = (("system", "System"), ("light", "Light"), ("dark", "Dark"))


def page_context(request: HttpRequest) -> dict[str, Any]:
    """Context of the page layout, read once per request for all of its templates."""
    found: dict[str, Any] | None = getattr(request, "frame", None)
    if found is None:
        found = _frame(request)
        request.frame = found  # type: ignore[attr-defined]
    return found


def _frame(request: HttpRequest) -> dict[str, Any]:
    """Pages outside a project get no navigation."""
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {"product_version": __version__, "oidc_name": settings.OIDC_NAME}
    frame: dict[str, Any] = {
        "product_version": __version__,
        "oidc_name": settings.OIDC_NAME,
        "theme": "" if user.theme == "system" else user.theme,
        "themes": THEMES,
        "initials": _initials(user),
        "plain_http": settings.PLAIN_HTTP,
        "may_see_components": user.is_staff or settings.DEBUG or settings.EMBEDDED,
    }
    mine: Membership | None = getattr(request, "membership", None)
    if mine is None:
        return frame
    memberships: list[Membership] = request.memberships  # type: ignore[attr-defined]
    match = request.resolver_match
    here = (match.url_name if match else None) or ""
    return frame | {
        "project": mine.project,
        "projects": [membership.project for membership in memberships],
        "role_label": mine.role.label,
        "may_operate": role_includes(mine.role, Role.OPERATOR),
        "may_admin": role_includes(mine.role, Role.ADMIN),
        "limits_reached": _list_limits_reached(mine.project) if mine.over_limit else {},
        "open_alert_count": mine.open_alerts,
        "folding": mine.folding,
        "help_link": build_help_link(here),
        "sections": build_navigation(mine.project.slug, here),
    }


def _list_limits_reached(project: Project) -> dict[str, str]:
    """A sentence for each kind of limit that was reached within the last day."""
    limits = read_limits(project.settings)
    rows = list_reached_limits(project_id=project.pk, now=clock.unix())
    return {
        row.kind: describe_limit(
            kind=row.kind, limit=getattr(limits, row.kind), example=row.example
        )
        for row in rows
    }


def _initials(user: User) -> str:
    words = user.get_full_name().split() or [user.get_username()]
    return "".join(word[0] for word in words[:2]).upper()
