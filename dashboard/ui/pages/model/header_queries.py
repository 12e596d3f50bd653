"""Data of the header of a model: its open alert, and the counts of its tabs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
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
    place = {
        "project_id": model.project_id,
        "model_id": model.pk,
        "environment": standing.environment,
    }
    waiting = Alert.objects.filter(
        project_id=model.project_id,
        deployment__model=model,
        deployment__environment=standing.environment,
    ).exclude(state=AlertState.RESOLVED)
    instances = Instance.objects.filter(**place).exclude(
        instance_id__startswith=OTHER_INSTANCE_PREFIX
    )
    since = clock.now() - timedelta(seconds=GONE_AFTER_S)
    reporting = instances.filter(where_counted(), last_seen_at__gte=since)
    ranks = instances.filter(world_size__gt=1).exclude(where_helping()).exclude(job="")
    current = FindingLife.objects.filter(
        finding__model=model, environment=standing.environment
    ).exclude(state="gone")
    chosen = list_baseline_choices(model=model, environment=standing.environment)
    columns = [field.attname for field in BaselineChoice._meta.concrete_fields]
    newest = clock.now() - timedelta(seconds=SILENT_AFTER_S)
    alerts, counted, heard, found, ranked, choices = fetch_rows_together(
        waiting.exclude(cause=AlertCause.FLEET_SILENCE).values_list(*ALERT_COLUMNS),
        reporting.values("model_id").annotate(n=Count("pk")).values_list("n").order_by(),
        reporting.filter(last_seen_at__gte=newest)
        .values("model_id")
        .annotate(n=Count("pk"))
        .values_list("n")
        .order_by(),
        current.values("environment").annotate(n=Count("pk")).values_list("n").order_by(),
        ranks.values_list("pk")[:1],
        chosen.values_list(*columns),
    )
    judged = standing.judged.pk if standing.judged else None
    mine = [row for row in alerts if row[3] == judged]
    return HeaderData(
        alert=_make_alert(*min(mine, key=lambda row: (row[1], row[0]))) if mine else None,
        instances=counted[0][0] if counted else 0,
        findings=found[0][0] if found else 0,
        has_ranks=bool(ranked),
        heard=heard[0][0] if heard else 0,
        choices=group_baseline_choices(
            _name_version(BaselineChoice.from_db(chosen.db, columns, row), standing)
            for row in choices
        ),
    )


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
