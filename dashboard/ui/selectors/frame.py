"""What the door and the frame of every page ask about a person: one query for their projects, roles, and what waits in each."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertState
from dashboard.alerts.switches.models import Switch
from dashboard.common import clock
from dashboard.fleet.models import LimitReached
from dashboard.fleet.selectors.limits import SHOWN_FOR
from dashboard.projects.models import Member, Project, Role


@dataclass(frozen=True)
class Membership:
    """One project of a person; `switched` is whether something is switched in it now, `over_limit` whether a limit was reached within a
    day: what there is none of is not asked for."""

    project: Project
    role: Role
    open_alerts: int
    switched: bool
    over_limit: bool


def memberships_of(user: User | AnonymousUser) -> list[Membership]:
    """The projects of a person by name, with their role in each."""
    if not user.is_authenticated or not user.is_active:
        return []
    waiting = Alert.objects.filter(project=OuterRef("project")).exclude(state=AlertState.RESOLVED).order_by().values("project")
    reached = LimitReached.objects.filter(project=OuterRef("project"), last_at__gte=clock.at(clock.unix() - SHOWN_FOR))
    rows = Member.objects.filter(user_id=user.pk).annotate(
        open_alerts=Coalesce(Subquery(waiting.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0),
        switched=Exists(Switch.objects.filter(project=OuterRef("project"), ended_at=None)),
        over_limit=Exists(reached),
    )
    return [
        Membership(row.project, Role(row.role), row.open_alerts, row.switched, row.over_limit)
        for row in rows.select_related("project").order_by("project__name", "project_id")
    ]
