"""Verdicts, changes, acceptances and open alerts for the Fleet page: two queries for any fleet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind

CHANGES_SHOWN = 12


@dataclass
class Judgements:
    """What is said now about each live deployment, and what was said anew since the start of the range."""

    current: dict[int, Verdict]
    changes: Sequence[Verdict]
    accepted: set[int] = field(default_factory=set)
    """Deployments whose version somebody accepted as the new normal."""


def judgements(*, project_id: int, start_minute: int, environment: str = "") -> Judgements:
    """Current verdicts of live deployments by deployment, and changes of verdict inside the range, newest first."""
    live = Q(current=True, deployment__ended_minute=None)
    changed = (
        Q(created_at__gte=clock.at_minute(start_minute))
        & ~Q(kind=F("previous_kind"))
        & ~Q(previous_kind="", kind=VerdictKind.NOT_ENOUGH_DATA)
    )
    rows = Verdict.objects.filter(live | changed, project_id=project_id)
    if environment:
        rows = rows.filter(deployment__environment=environment)
    choices = BaselineChoice.objects.filter(version=OuterRef("deployment__version"), environment=OuterRef("deployment__environment"))
    rows = rows.annotate(accepted=Exists(choices.filter(kind="accept")))
    found = list(rows.select_related("deployment__version", "deployment__model", "baseline__version").order_by("-created_at", "-pk"))
    since = clock.at_minute(start_minute)
    return Judgements(
        current={row.deployment_id: row for row in found if row.current},
        changes=[row for row in found if _is_change(row, since)][:CHANGES_SHOWN],
        accepted={row.deployment_id for row in found if getattr(row, "accepted", False)},
    )


def open_alerts(*, project_id: int) -> list[Alert]:
    """Alerts that are not resolved, newest first."""
    rows = Alert.objects.filter(project_id=project_id).exclude(state=AlertState.RESOLVED)
    return list(rows.select_related("deployment").order_by("-opened_at"))


def _is_change(row: Verdict, since: datetime) -> bool:
    """A first verdict counts unless it only says that there is nothing to say yet."""
    before = row.previous_kind or VerdictKind.NOT_ENOUGH_DATA
    return row.created_at >= since and row.kind != before
