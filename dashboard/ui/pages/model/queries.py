"""Data of the Overview of a model: the evaluated pair of versions, charts and their marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import F, Q, QuerySet

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.deployment_marks import list_newest_marks
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import DeploymentMark, WatchedModel
from dashboard.fleet.selectors.instances.instances import (
    InstanceData,
    ReportingInstance,
    list_reporting_instances,
    list_version_instances,
)
from dashboard.fleet.selectors.instances.recent_instances import GONE_AFTER_S
from dashboard.fleet.selectors.versions.current_traffic import (
    CurrentTraffic,
    query_current_traffic,
    sum_current_traffic,
)
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    Span,
    read_outermost_series,
    read_region_seconds,
)
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.pages.model.rollups import read_rollups
from dashboard.ui.pages.model.verdict_queries import MAX_VERSIONS_LISTED as MAX_VERSIONS_LISTED
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts as ModelVerdicts
from dashboard.ui.pages.model.verdict_queries import read_model_verdicts as read_model_verdicts

MAX_ALERTS_READ = 20
MAX_VERDICTS_READ = 300
DEPLOYMENT_MARGIN_MINUTES = 60
"""Minutes before and after a deployment in which its processes may have reported without a call."""


class VerdictChange(NamedTuple):
    """Minute of a change of a deployment's verdict, the new verdict, and since when it applies."""

    deployment_id: int
    minute: int
    kind: str
    since_minute: int | None


class ModelEvents(NamedTuple):
    """Unresolved alerts and those of the window, newest first; deployments that CI recorded in the
    window, oldest first; changes of the verdicts of the drawn versions, oldest first; and the two
    lists of the present traffic."""

    alerts: list[Alert]
    posted: list[DeploymentMark]
    changes: list[VerdictChange]
    traffic: tuple[Rows, Rows]


@dataclass
class ModelData:
    """Data of the page."""

    model: WatchedModel
    window: TimeBins
    standing: ModelVerdicts
    drawn: list[VersionStyle]
    region: str
    regions: dict[str, float]
    calls: list[CallPoint]
    processes: list[ProcessPoint]
    instances: list[InstanceData]
    alerts: list[Alert]
    posted: list[DeploymentMark] = field(default_factory=list)
    changes: list[VerdictChange] = field(default_factory=list)
    traffic: CurrentTraffic = field(default_factory=CurrentTraffic)
    """Present traffic of the evaluated version."""

    @property
    def hourly(self) -> bool:
        """Whether the range is read from hours."""
        return self.window.step % 60 == 0


def read_model_data(
    *, model: WatchedModel, standing: ModelVerdicts, window: TimeBins, region: str
) -> ModelData:
    """Reads the page in four queries, or five if there are several regions, independent of the
    length of the history."""
    project, environment = model.project_id, standing.environment
    span, hourly, charted = Span(window.first, window.last), window.step % 60 == 0, standing.listed
    in_window = clip_spans(standing, charted, span)
    drawn = standing.drawn([id for id in charted if id in in_window or id in standing.pair])
    series = read_outermost_series(project_id=project, version_ids=charted, environment=environment)
    regions = read_region_seconds(project_id=project, series=series, span=span, hourly=hourly)
    region = region if region in regions else next(iter(regions), "")
    events = _read_events(model, standing, drawn, window)
    counted = read_rollups(
        place={"project_id": project, "environment": environment},
        series=series,
        region=region,
        spans=in_window,
        own={},
        hourly=hourly,
        tabled=False,
    )
    return ModelData(
        model=model,
        window=window,
        standing=standing,
        drawn=drawn,
        region=region,
        regions=regions,
        calls=counted.calls,
        processes=counted.processes,
        instances=list_version_instances(
            project_id=project, version_ids=charted, environment=environment
        ),
        alerts=events.alerts,
        posted=events.posted,
        changes=events.changes,
        traffic=sum_current_traffic(*events.traffic, series, standing.judged.version_id)
        if standing.judged
        else CurrentTraffic(),
    )


def _read_events(
    model: WatchedModel,
    standing: ModelVerdicts,
    drawn: Sequence[VersionStyle],
    window: TimeBins,
) -> ModelEvents:
    """One query for all lists."""
    first, last = clock.at_minute(window.first), clock.at_minute(window.last)
    warned = _query_alerts(model, standing, first)
    posted = list_newest_marks(
        project_id=model.project_id,
        model_name=model.name,
        environment=standing.environment,
        first=first,
        last=last,
    )
    changed = _query_changes(model, standing, drawn, window)
    alert_columns, mark_columns = (
        [column.attname for column in table._meta.concrete_fields]
        for table in (Alert, DeploymentMark)
    )
    judged = standing.judged
    alerts, marks, changes, calls, instances = fetch_rows_together(
        warned.values_list(*alert_columns)[:MAX_ALERTS_READ],
        posted.values_list(*mark_columns),
        changed.values_list(*VerdictChange._fields)[:MAX_VERDICTS_READ],
        *(query_current_traffic(judged) if judged else (None, None)),
    )
    return ModelEvents(
        sorted(
            (Alert.from_db(warned.db, alert_columns, row) for row in alerts),
            key=lambda alert: alert.opened_at,
            reverse=True,
        ),
        sorted(
            (DeploymentMark.from_db(posted.db, mark_columns, row) for row in marks),
            key=lambda mark: (mark.at, mark.pk),
        ),
        sorted((VerdictChange(*row) for row in changes), key=lambda one: one.minute),
        (calls, instances),
    )


def _query_alerts(model: WatchedModel, standing: ModelVerdicts, first: datetime) -> QuerySet[Alert]:
    rows = Alert.objects.filter(
        project_id=model.project_id,
        deployment__model=model,
        deployment__environment=standing.environment,
    ).exclude(cause=AlertCause.FLEET_SILENCE)
    shown = rows.filter(~Q(state=AlertState.RESOLVED) | Q(opened_at__gte=first))
    return shown.order_by("-opened_at")  # before the limit, because an open alert may be old


def _query_changes(
    model: WatchedModel,
    standing: ModelVerdicts,
    drawn: Sequence[VersionStyle],
    window: TimeBins,
) -> QuerySet[Verdict]:
    ids = {version.id for version in drawn}
    rows = Verdict.objects.filter(
        project_id=model.project_id,
        deployment_id__in=[row.pk for row in standing.deployments if row.version_id in ids],
        minute__lte=window.last,
    )
    return rows.exclude(previous_kind=F("kind")).order_by("-minute")


def list_reporting(model: WatchedModel, environment: str) -> list[ReportingInstance]:
    """The instances that reported in the last half hour."""
    since = clock.now() - timedelta(seconds=GONE_AFTER_S)
    return list_reporting_instances(
        project_id=model.project_id, model_id=model.pk, environment=environment, since=since
    )


def clip_spans(standing: ModelVerdicts, wanted: Sequence[int], span: Span) -> dict[int, Span]:
    """The versions with data in the span, each with the part in which it was deployed: a year is
    long, but most versions are live for a short part."""
    newest: dict[int, int] = {}
    oldest: dict[int, int] = {}
    for deployment in standing.deployments:
        newest[deployment.version_id] = max(
            newest.get(deployment.version_id, 0), deployment.last_minute
        )
        oldest[deployment.version_id] = min(
            oldest.get(deployment.version_id, span.last), deployment.started_minute
        )
    known = standing.all_deployments
    return {
        id: Span(
            max(span.first, oldest[id] - DEPLOYMENT_MARGIN_MINUTES) if known else span.first,
            max(span.first, min(span.last, newest[id] + DEPLOYMENT_MARGIN_MINUTES)),
        )
        for id in wanted
        if newest.get(id, 0) >= span.first
    }
