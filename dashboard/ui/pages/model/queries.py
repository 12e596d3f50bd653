"""Data of the Model page across the stages: the evaluated pair of versions, and the data of all
versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Q

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.common.raw_queries import fetch_objects_together
from dashboard.fleet.deployment_marks import list_newest_marks
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import (
    Deployment,
    DeploymentMark,
    WatchedModel,
)
from dashboard.fleet.selectors.findings.findings import FindingData, list_version_findings
from dashboard.fleet.selectors.instances.instances import (
    InstanceData,
    ReportingInstance,
    list_reporting_instances,
    list_version_instances,
)
from dashboard.fleet.selectors.instances.recent_instances import GONE_AFTER_S
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    Span,
    read_outermost_series,
    read_region_seconds,
)
from dashboard.regressions.models import BaselineChoice
from dashboard.regressions.selectors import (
    BaselineChoices,
    group_baseline_choices,
    list_baseline_choices,
)
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.pages.model.rollups import read_rollups
from dashboard.ui.pages.model.verdict_queries import MAX_VERSIONS_LISTED as MAX_VERSIONS_LISTED
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts as ModelVerdicts
from dashboard.ui.pages.model.verdict_queries import read_model_verdicts as read_model_verdicts

MAX_ALERTS_READ = 20
DEPLOYMENT_MARGIN_MINUTES = 60
"""Minutes before and after a deployment in which its processes may have reported without a call."""


@dataclass(frozen=True)
class ModelQuery:
    """Parameters of the URL; the page chooses empty values."""

    window: TimeBins
    environment: str = ""
    region: str = ""
    version_id: int | None = None
    tabled: tuple[int, ...] = ()
    """The versions on this page of the table."""

    @property
    def hourly(self) -> bool:
        """Long ranges read hours."""
        return self.window.step % 60 == 0


@dataclass
class ModelData:
    """Data of the page."""

    model: WatchedModel
    asked: ModelQuery
    standing: ModelVerdicts
    drawn: list[VersionStyle]
    region: str
    regions: dict[str, float]
    calls: list[CallPoint]
    processes: list[ProcessPoint]
    instances: list[InstanceData]
    findings: list[FindingData]
    alerts: list[Alert]
    own_calls: list[CallPoint] = field(default_factory=list)
    own_processes: list[ProcessPoint] = field(default_factory=list)
    why_eager: dict[int, EagerBreakdown] = field(default_factory=dict)
    reporting: list[ReportingInstance] = field(default_factory=list)
    chosen: BaselineChoices = field(default_factory=lambda: BaselineChoices(None, {}))
    posted: list[DeploymentMark] = field(default_factory=list)

    @property
    def accepted(self) -> BaselineChoice | None:
        """The acceptance of the evaluated version, if any."""
        return (
            self.chosen.accepted.get(self.standing.judged.version_id)
            if self.standing.judged
            else None
        )


def read_model_data(
    *, model: WatchedModel, asked: ModelQuery, standing: ModelVerdicts | None = None
) -> ModelData:
    """Reads the page in a fixed number of queries, independent of the length of the history;
    `standing` avoids a second read of the verdicts."""
    standing = standing or read_model_verdicts(
        model=model, environment=asked.environment, version_id=asked.version_id
    )
    project, environment, hourly = model.project_id, standing.environment, asked.hourly
    span = Span(asked.window.first, asked.window.last)
    charted = standing.listed
    wanted = list(dict.fromkeys((*charted, *asked.tabled)))
    in_window = clip_spans(standing, wanted, span)
    drawn = standing.drawn([id for id in charted if id in in_window or id in standing.pair])
    series = read_outermost_series(project_id=project, version_ids=wanted, environment=environment)
    regions = read_region_seconds(project_id=project, series=series, span=span, hourly=hourly)
    region = asked.region if asked.region in regions else next(iter(regions), "")
    own = {
        id: _last_day(standing.latest[id])
        for id in wanted
        if id not in in_window and id in standing.latest
    }
    ids = [version.id for version in drawn]
    instances = list_version_instances(
        project_id=project, version_ids=wanted, environment=environment
    )
    alerts, posted, chosen = _read_events(model, standing, asked.window)
    place = {"project_id": project, "environment": environment}
    counted = read_rollups(
        place=place, series=series, region=region, spans=in_window, own=own, hourly=hourly
    )
    return ModelData(
        model=model,
        asked=asked,
        standing=standing,
        drawn=drawn,
        region=region,
        regions=regions,
        calls=counted.calls,
        processes=counted.processes,
        instances=instances,
        findings=list_version_findings(
            project_id=project, model_id=model.pk, version_ids=ids, environment=environment
        ),
        alerts=alerts,
        own_calls=counted.own_calls,
        own_processes=counted.own_processes,
        why_eager=counted.why_eager,
        chosen=chosen,
        posted=posted,
        reporting=_list_reporting(model, environment),
    )


def _read_events(
    model: WatchedModel, standing: ModelVerdicts, window: TimeBins
) -> tuple[list[Alert], list[DeploymentMark], BaselineChoices]:
    """One query for three lists: unresolved alerts and those of the window, newest first;
    deployments that CI recorded in the window, oldest first; and the baselines that operators
    chose."""
    project, environment = model.project_id, standing.environment
    first, last = clock.at_minute(window.first), clock.at_minute(window.last)
    warned = Alert.objects.filter(
        project_id=project, deployment__model=model, deployment__environment=environment
    )
    warned = warned.exclude(cause=AlertCause.FLEET_SILENCE).filter(
        ~Q(state=AlertState.RESOLVED) | Q(opened_at__gte=first)
    )  # Sorted before the limit applies, because an open alert may be old.
    alerts, posted, choices = fetch_objects_together(
        warned.select_related("deployment").order_by("-opened_at")[:MAX_ALERTS_READ],
        list_newest_marks(
            project_id=project,
            model_name=model.name,
            environment=environment,
            first=first,
            last=last,
        ),
        list_baseline_choices(model=model, environment=environment),
    )
    for choice in choices:
        if choice.version_id in standing.latest:
            choice.version = standing.latest[choice.version_id].version
    return (
        sorted(alerts, key=lambda alert: alert.opened_at, reverse=True),
        sorted(posted, key=lambda mark: (mark.at, mark.pk)),
        group_baseline_choices(choices),
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


def _last_day(deployment: Deployment) -> Span:
    return Span(max(0, deployment.last_minute - 1440), deployment.last_minute + 1)


def _list_reporting(model: WatchedModel, environment: str) -> list[ReportingInstance]:
    since = clock.now() - timedelta(seconds=GONE_AFTER_S)
    return list_reporting_instances(
        project_id=model.project_id, model_id=model.pk, environment=environment, since=since
    )
