"""Verdicts, changes, acceptances and open alerts for the Fleet page: at most four queries for any
fleet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from dashboard.alerts.current_verdict import annotate_open_alert, apply_open_alerts
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind
from dashboard.vocabulary.severity import rank_severity

CHANGES_SHOWN = 12


@dataclass
class FleetVerdicts:
    """Current verdicts of deployments that are live or have an open alert, and verdict changes
    since the start of the range."""

    current: dict[int, Verdict]
    changes: Sequence[Verdict]
    accepted: set[int] = field(default_factory=set)
    """Deployments whose version an operator accepted as new baseline."""


def read_fleet_verdicts(
    *, project_id: int, start_minute: int, environment: str = "", alerts: bool = True
) -> FleetVerdicts:
    """Current verdicts of live deployments by deployment, and verdict changes in the range, newest
    first.

    `alerts` states whether the project has an open alert."""
    of_live = Q(deployment__ended_minute=None)
    if alerts:
        of_live |= Q(deployment__in=query_open_alerts(project_id=project_id).values("deployment"))
    live = Q(current=True) & of_live
    changed = (
        Q(created_at__gte=clock.at_minute(start_minute))
        & ~Q(kind=F("previous_kind"))
        & ~Q(previous_kind="", kind=VerdictKind.NOT_ENOUGH_DATA)
    )
    rows = Verdict.objects.filter(live | changed, project_id=project_id)
    if environment:
        rows = rows.filter(deployment__environment=environment)
    choices = BaselineChoice.objects.filter(
        version=OuterRef("deployment__version"), environment=OuterRef("deployment__environment")
    )
    rows = rows.annotate(accepted=Exists(choices.filter(kind="accept")))
    rows = (annotate_open_alert(rows) if alerts else rows).select_related(
        "deployment__version", "deployment__model", "baseline__version"
    )
    found = list(rows.order_by("-created_at", "-pk"))
    since = clock.at_minute(start_minute)
    current = [
        row
        for row in found
        if row.current and (row.deployment.ended_minute is None or getattr(row, "open_alert", None))
    ]
    return FleetVerdicts(
        current={row.deployment_id: row for row in apply_open_alerts(current)},
        changes=[row for row in found if _is_change(row, since)][:CHANGES_SHOWN],
        accepted={row.deployment_id for row in found if getattr(row, "accepted", False)},
    )


def list_open_alerts(*, project_id: int) -> list[Alert]:
    """Unresolved alerts, newest first."""
    return list(
        query_open_alerts(project_id=project_id).select_related("deployment").order_by("-opened_at")
    )


def query_open_alerts(*, project_id: int) -> QuerySet[Alert]:
    """The same as a query condition."""
    return Alert.objects.filter(project_id=project_id).exclude(state=AlertState.RESOLVED)


def _is_change(row: Verdict, since: datetime) -> bool:
    """A first verdict counts as a change unless it is NOT ENOUGH DATA. A verdict that an open alert
    outlives is not a change."""
    if row.current and getattr(row, "open_alert", None) and not rank_severity(row.kind):
        return False
    before = row.previous_kind or VerdictKind.NOT_ENOUGH_DATA
    return row.created_at >= since and row.kind != before
