"""Memberships: one query for a person's projects, roles and open alerts, for access checks and the
page layout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from dashboard.accounts.models import User
from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.common.health import FOLD_EXPECTED_WITHIN_S
from dashboard.common.heartbeat import WORKER
from dashboard.common.models import Heartbeat
from dashboard.fleet.models import LimitReached
from dashboard.fleet.models.limits import COUNTER
from dashboard.fleet.selectors.limits import SHOWN_FOR_S
from dashboard.projects.models import Member, Project, Role


@dataclass(frozen=True)
class Membership:
    """One project of a person. `switched`: a kill switch is active in it. `over_limit`: a limit was
    reached within a day. The flags let pages skip queries that would find nothing. `folded_at`: the
    last fold of any worker, for the health mark of the bar."""

    project: Project
    role: Role
    open_alerts: int
    switched: bool
    over_limit: bool
    folded_at: datetime | None

    @property
    def folding(self) -> bool:
        """True if a worker finished a fold within the expected time."""
        if self.folded_at is None:
            return False
        return (clock.now() - self.folded_at).total_seconds() <= FOLD_EXPECTED_WITHIN_S


def find_person_with_projects(user_id: int) -> User | None:
    """Returns the person and caches their projects for `list_memberships`. A person without
    projects costs a second query."""
    rows = list(_members(user_id).select_related("project", "user"))
    if not rows:
        return User.objects.filter(pk=user_id).first()
    user = rows[0].user
    user.memberships_read = [_membership(row) for row in rows]  # type: ignore[attr-defined]
    return user


def list_memberships(user: User | AnonymousUser) -> list[Membership]:
    """The person's projects by name, with their roles, as read at the start of the request."""
    if not isinstance(user, User) or not user.is_active:
        return []
    read: list[Membership] | None = getattr(user, "memberships_read", None)
    return (
        read
        if read is not None
        else [_membership(row) for row in _members(user.pk).select_related("project")]
    )


def _members(user_id: int) -> QuerySet[Member]:
    waiting = (
        Alert.objects.filter(project=OuterRef("project"))
        .exclude(state=AlertState.RESOLVED)
        .order_by()
        .values("project")
    )
    reached = LimitReached.objects.exclude(kind=COUNTER).filter(
        project=OuterRef("project"), last_at__gte=clock.at(clock.unix() - SHOWN_FOR_S)
    )
    rows = Member.objects.filter(user_id=user_id).annotate(
        open_alerts=Coalesce(
            Subquery(waiting.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0
        ),
        switched=Exists(Switch.objects.filter(project=OuterRef("project"), ended_at=None)),
        over_limit=Exists(reached),
        folded_at=Subquery(
            Heartbeat.objects.filter(kind=WORKER, folded_at__isnull=False)
            .order_by("-folded_at")
            .values("folded_at")[:1]
        ),
    )
    return rows.order_by("project__name", "project_id")


def _membership(row: Any) -> Membership:
    return Membership(
        project=row.project,
        role=Role(row.role),
        open_alerts=row.open_alerts,
        switched=row.switched,
        over_limit=row.over_limit,
        folded_at=row.folded_at,
    )
