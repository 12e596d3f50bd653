"""Verdicts, changes, acceptances and open alerts for the Fleet page: at most four queries for any
fleet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast

from dashboard.alerts.current_verdict import annotate_open_alert, apply_open_alerts
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.common.raw_queries import build_object, fetch_rows
from dashboard.fleet.models import Deployment
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind
from dashboard.vocabulary.severity import rank_severity

COLUMNS = (
    *("id", "project_id", "deployment_id", "baseline_id", "kind", "previous_kind", "sentence"),
    *("cause", "minute", "since_minute", "created_at", "current"),
)
"""Columns of a verdict without its evidence, which is a hundred times as large."""


@dataclass
class FleetVerdicts:
    """Current verdicts of deployments that are live or have an open alert, and verdict changes
    since the start of the range, newest first. The evidence is not read yet."""

    current: dict[int, Verdict]
    changes: Sequence[Verdict]
    accepted: set[int] = field(default_factory=set)
    """Deployments whose version an operator accepted as new baseline."""


def read_fleet_verdicts(
    *,
    project_id: int,
    start_minute: int,
    deployments: Iterable[Deployment],
    environment: str = "",
    alerts: bool = True,
) -> FleetVerdicts:
    """Current verdicts of these deployments, and their verdict changes in the range; one query.

    `alerts` states whether the project has an open alert."""
    known = {one.pk: one for one in deployments}
    rows = _filter_verdicts(project_id, start_minute, environment, alerts)
    found = [
        _build_verdict(row, known)
        for row in fetch_rows(rows)
        if row[COLUMNS.index("deployment_id")] in known
    ]
    since = clock.at_minute(start_minute)
    current = [
        row
        for row in found
        if row.current and (row.deployment.ended_minute is None or getattr(row, "open_alert", None))
    ]
    return FleetVerdicts(
        current={row.deployment_id: row for row in apply_open_alerts(current)},
        changes=[row for row in found if _is_change(row, since)],
        accepted={row.deployment_id for row in found if getattr(row, "accepted", False)},
    )


def query_evidence(verdict_ids: Iterable[int]) -> QuerySet[Verdict, Any]:
    """The query of the evidence of some verdicts, as text: for one query together with others."""
    rows = Verdict.objects.filter(pk__in=list(verdict_ids)).order_by()
    texts: QuerySet[Verdict, Any] = rows.annotate(told=Cast("evidence", TextField())).values_list(
        "pk", "told"
    )
    return texts


def _filter_verdicts(
    project_id: int, start_minute: int, environment: str, alerts: bool
) -> QuerySet[Verdict, Any]:
    of_live = Q(deployment__ended_minute=None)
    if alerts:
        of_live |= Q(deployment__in=query_open_alerts(project_id=project_id).values("deployment"))
    changed = (
        Q(created_at__gte=clock.at_minute(start_minute))
        & ~Q(kind=F("previous_kind"))
        & ~Q(previous_kind="", kind=VerdictKind.NOT_ENOUGH_DATA)
    )
    rows = Verdict.objects.filter(Q(current=True) & of_live | changed, project_id=project_id)
    if environment:
        rows = rows.filter(deployment__environment=environment)
    choices = BaselineChoice.objects.filter(
        version=OuterRef("deployment__version"), environment=OuterRef("deployment__environment")
    )
    rows = rows.annotate(accepted=Exists(choices.filter(kind="accept")))
    extra = ("accepted", "open_alert") if alerts else ("accepted",)
    rows = annotate_open_alert(rows) if alerts else rows
    listed: QuerySet[Verdict, Any] = rows.order_by("-created_at", "-pk").values_list(
        *COLUMNS, *extra
    )
    return listed


def _build_verdict(row: Sequence[Any], known: Mapping[int, Deployment]) -> Verdict:
    deployment, baseline = (row[COLUMNS.index(name)] for name in ("deployment_id", "baseline_id"))
    one = build_object(
        Verdict,
        COLUMNS,
        row[: len(COLUMNS)],
        deployment=known[deployment],
        baseline=known.get(baseline),
    )
    one.accepted = bool(row[len(COLUMNS)])  # type: ignore[attr-defined]
    one.open_alert = row[len(COLUMNS) + 1] if len(row) > len(COLUMNS) + 1 else None  # type: ignore[attr-defined]
    return one


def list_open_alerts(*, project_id: int) -> list[Alert]:
    """Unresolved alerts, newest first."""
    return list(
        query_open_alerts(project_id=project_id)
        .defer("ran_on")
        .select_related("deployment")
        .order_by("-opened_at")
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
