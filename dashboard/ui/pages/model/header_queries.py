"""Data of the header of a model: its open alert, and the counts of its tabs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import FindingLife, Instance, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import SILENT_AFTER_S
from dashboard.fleet.selectors.instances.recent_instances import GONE_AFTER_S
from dashboard.fleet.selectors.instances.role_filters import where_counted, where_helping
from dashboard.regressions.models import BaselineChoice
from dashboard.regressions.selectors import (
    BaselineChoices,
    group_baseline_choices,
    list_baseline_choices,
)
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts

ALERT_COLUMNS = (
    "number",
    "cause",
    "state",
    "deployment_id",
    "acknowledged_at",
    "owner__username",
    "owner__first_name",
    "owner__last_name",
)


@dataclass(frozen=True)
class HeaderAlert:
    """The unresolved alert of the evaluated version, and the person who acknowledged it."""

    number: int
    cause: str
    state: str
    acknowledged_at: datetime | None
    owner: str

    @property
    def is_open(self) -> bool:
        """Whether the alert waits for an acknowledgement."""
        return self.state == AlertState.OPEN


@dataclass(frozen=True)
class HeaderData:
    """The open alert, the numbers of reporting instances and of current findings, and whether a job
    with several ranks reported."""

    alert: HeaderAlert | None
    instances: int
    findings: int
    has_ranks: bool
    heard: int
    """Number of these instances that are not silent, if they have not ended."""
    choices: BaselineChoices
    """The baselines that operators chose."""


def read_header_data(*, model: WatchedModel, standing: ModelVerdicts) -> HeaderData:
    """Reads the header in one query."""
    environment = standing.environment
    waiting = Alert.objects.filter(
        project_id=model.project_id,
        deployment__model=model,
        deployment__environment=environment,
    ).exclude(state=AlertState.RESOLVED)
    current = FindingLife.objects.filter(finding__model=model, environment=environment)
    chosen = list_baseline_choices(model=model, environment=environment)
    columns = [field.attname for field in BaselineChoice._meta.concrete_fields]
    alerts, findings, choices, reporting, heard, ranks = fetch_rows_together(
        waiting.exclude(cause=AlertCause.FLEET_SILENCE).values_list(*ALERT_COLUMNS),
        _count(current.exclude(state="gone")),
        chosen.values_list(*columns),
        *_query_instances(model, environment),
    )
    judged = standing.judged.pk if standing.judged else None
    mine = [row for row in alerts if row[3] == judged]
    return HeaderData(
        alert=_make_alert(*min(mine, key=lambda row: (row[1], row[0]))) if mine else None,
        instances=_read_count(reporting),
        findings=_read_count(findings),
        has_ranks=bool(ranks),
        heard=_read_count(heard),
        choices=group_baseline_choices(
            _name_version(BaselineChoice.from_db(chosen.db, columns, row), standing)
            for row in choices
        ),
    )


def _query_instances(model: WatchedModel, environment: str) -> tuple[QuerySet[Any, Any], ...]:
    """Queries of the number of reporting instances, of those that are not silent, and of a job with
    several ranks."""
    now = clock.now()
    rows = Instance.objects.filter(
        project_id=model.project_id, model_id=model.pk, environment=environment
    ).exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    reporting = rows.filter(
        where_counted(), last_seen_at__gte=now - timedelta(seconds=GONE_AFTER_S)
    )
    heard = reporting.filter(last_seen_at__gte=now - timedelta(seconds=SILENT_AFTER_S))
    ranks = rows.filter(world_size__gt=1).exclude(where_helping()).exclude(job="")
    return _count(reporting), _count(heard), ranks.values_list("pk")[:1]


def _count(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    """The number of rows as a query; no row instead of zero."""
    counted: QuerySet[Any, Any] = rows.order_by().values("environment").annotate(n=Count("pk"))
    return counted.values_list("n")


def _read_count(rows: Rows) -> int:
    return int(rows[0][0]) if rows else 0


def _name_version(choice: BaselineChoice, standing: ModelVerdicts) -> BaselineChoice:
    """The choice with its version, if that is known without a query."""
    if choice.version_id in standing.latest:
        choice.version = standing.latest[choice.version_id].version
    return choice


def _make_alert(
    number: int,
    cause: str,
    state: str,
    deployment: int,
    acknowledged_at: datetime | None,
    username: str | None,
    first_name: str | None,
    last_name: str | None,
) -> HeaderAlert:
    named = f"{first_name or ''} {last_name or ''}".strip()
    return HeaderAlert(number, cause, state, acknowledged_at, named or username or "")
