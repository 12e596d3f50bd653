"""Memberships: one query for a person's projects, roles and open alerts, for access checks and the
page layout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from dashboard.accounts.models import User
from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.common.health import FOLD_EXPECTED_WITHIN_S
from dashboard.common.heartbeat import WORKER
from dashboard.common.models import Heartbeat
from dashboard.common.raw_queries import fetch_compiled
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
    fleet_views: list[Any]
    """The person's saved views of the Fleet page."""
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
    found = _read(user_id)
    if not found:
        return User.objects.filter(pk=user_id).first()
    user = found[0][0]
    user.memberships_read = [membership for _, membership in found]  # type: ignore[attr-defined]
    return user


def list_memberships(user: User | AnonymousUser) -> list[Membership]:
    """The person's projects by name, with their roles, as read at the start of the request."""
    if not isinstance(user, User) or not user.is_active:
        return []
    read: list[Membership] | None = getattr(user, "memberships_read", None)
    return read if read is not None else [membership for _, membership in _read(user.pk)]


_USER = [field.attname for field in User._meta.concrete_fields]
_PROJECT = [field.attname for field in Project._meta.concrete_fields]
_FACTS = ("role", "fleet_views", "open_alerts", "switched", "limit_reached_at", "folded_at")


def _read(user_id: int) -> list[tuple[User, Membership]]:
    """The person, once for each of their projects, with the membership."""
    return [_make_membership(row) for row in fetch_compiled(_query_members, user_id)]


def _query_members(user_id: int) -> QuerySet[Any, Any]:
    """The members' columns, in the order of `_make_membership`."""
    of_project = {"project": OuterRef("project")}
    waiting = Alert.objects.filter(**of_project).exclude(state=AlertState.RESOLVED)
    counted = waiting.order_by().values("project").annotate(n=Count("pk")).values("n")
    reached = LimitReached.objects.filter(**of_project).exclude(kind=COUNTER)
    folds = Heartbeat.objects.filter(kind=WORKER, folded_at__isnull=False)
    rows = Member.objects.filter(user_id=user_id).annotate(
        open_alerts=Coalesce(Subquery(counted, output_field=IntegerField()), 0),
        switched=Exists(Switch.objects.filter(**of_project, ended_at=None)),
        limit_reached_at=Subquery(reached.order_by("-last_at").values("last_at")[:1]),
        folded_at=Subquery(folds.order_by("-folded_at").values("folded_at")[:1]),
    )
    users, projects = (f"user__{name}" for name in _USER), (f"project__{name}" for name in _PROJECT)
    return rows.order_by("project__name", "project_id").values_list(*users, *projects, *_FACTS)


def _make_membership(row: tuple[Any, ...]) -> tuple[User, Membership]:
    first, second = len(_USER), len(_USER) + len(_PROJECT)
    role, fleet_views, open_alerts, switched, limit_reached_at, folded_at = row[second:]
    since = clock.now() - timedelta(seconds=SHOWN_FOR_S)
    membership = Membership(
        project=Project.from_db(DEFAULT_DB_ALIAS, _PROJECT, row[first:second]),
        role=Role(role),
        open_alerts=open_alerts,
        switched=bool(switched),
        over_limit=limit_reached_at is not None and limit_reached_at >= since,
        fleet_views=fleet_views if isinstance(fleet_views, list) else [],
        folded_at=folded_at,
    )
    return User.from_db(DEFAULT_DB_ALIAS, _USER, row[:first]), membership
