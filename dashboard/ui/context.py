"""What every page needs besides its own rows: the project, the projects of the person, their role, how many alerts are open."""

from typing import Any

from django.http import HttpRequest

from dashboard import __version__
from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.selectors.limits import limits_reached
from dashboard.projects.limits import limit_sentence, limits_of
from dashboard.projects.models import Member, Project, Role

THEMES = (("system", "System"), ("light", "Light"), ("dark", "Dark"))
_RANK = {role: rank for rank, role in enumerate(Role)}


def page_context(request: HttpRequest) -> dict[str, Any]:
    """The frame's own values, read once a request, however many templates it takes."""
    found: dict[str, Any] | None = getattr(request, "frame", None)
    if found is None:
        found = _frame(request)
        request.frame = found  # type: ignore[attr-defined]
    return found


def _frame(request: HttpRequest) -> dict[str, Any]:
    """A page outside a project, and a part that is fetched again, get no navigation."""
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {"product_version": __version__}
    frame: dict[str, Any] = {
        "product_version": __version__,
        "theme": "" if user.theme == "system" else user.theme,
        "themes": THEMES,
        "initials": _initials(user),
    }
    project = getattr(request, "project", None)
    if project is None or getattr(request, "htmx", False):
        return frame
    memberships = list(Member.objects.filter(user=user).select_related("project").order_by("project__name"))
    role = next((Role(member.role) for member in memberships if member.project_id == project.pk), Role.VIEWER)
    match = request.resolver_match
    return frame | {
        "project": project,
        "projects": [member.project for member in memberships],
        "role_label": role.label,
        "may_operate": _RANK[role] >= _RANK[Role.OPERATOR],
        "may_admin": _RANK[role] >= _RANK[Role.ADMIN],
        "limits_reached": _limits_reached(project),
        "open_alert_count": Alert.objects.filter(project=project).exclude(state=AlertState.RESOLVED).count(),
        "here": match.url_name if match else "",
        "section": _section(match.url_name if match else None),
    }


def _limits_reached(project: Project) -> list[str]:
    """A sentence a limit that was reached within the last day."""
    limits = limits_of(project.settings)
    rows = limits_reached(project_id=project.pk, now=clock.unix())
    return [limit_sentence(kind=row.kind, limit=getattr(limits, row.kind), example=row.example) for row in rows]


def _initials(user: User) -> str:
    words = user.get_full_name().split() or [user.get_username()]
    return "".join(word[0] for word in words[:2]).upper()


def _section(name: str | None) -> str:
    name = name or ""
    if name.startswith(("alert", "alerts")):
        return "alerts"
    if name == "health":
        return "health"
    if name.startswith(("judging", "rule", "maintenance")):
        return "settings"
    return "setup" if name.startswith(("setup", "key", "channel")) else "fleet"
