"""Data of the Version page: where the version runs, its verdicts, and its starts, compilations and
calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery, When

from dashboard.alerts.current_verdict import (
    build_verdict_alerts_subquery,
    find_divergence_alert,
    resolve_current_verdict,
)
from dashboard.common import clock
from dashboard.fleet.budgets import Budgets, resolve_budgets
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.selectors.compilations.compilations import (
    ProcessCacheAnswers,
    Recordings,
    VersionCompilation,
    read_process_answers,
    read_version_compilations,
)
from dashboard.fleet.selectors.findings.findings import FindingData, list_version_findings
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart, read_process_starts
from dashboard.fleet.selectors.numerics import ParityRow, list_version_parities
from dashboard.fleet.selectors.versions.compiled_share import SeriesCalls, read_series_calls
from dashboard.fleet.selectors.versions.eager_causes import read_version_eager_causes
from dashboard.regressions.evidence_reader import read_warm_up
from dashboard.regressions.models import RetainedVerdict
from dashboard.regressions.stored_evidence import StoredWarmUp
from dashboard.vocabulary.severity import rank_severity

MAX_DEPLOYMENTS = 60
MAX_DAYS = 30
"""Calls of an older version are those of its last days."""
BEFORE_DEPLOYMENT = timedelta(days=1)
"""Compilations of a start precede the first minute with data."""


@dataclass(frozen=True)
class VersionVerdict:
    """The current verdict of a deployment."""

    kind: str
    sentence: str
    cause: str
    since_minute: int | None
    outlived: RetainedVerdict | None = None
    warm_up: StoredWarmUp | None = None
    """The excluded first minutes of processes; None for a verdict of an earlier release."""


@dataclass(frozen=True)
class OtherVersion:
    """Another version, with the fields that pages name."""

    id: int
    name: str
    compared: bool
    """True if a verdict compares with it; otherwise it is the previously deployed version."""


@dataclass(frozen=True)
class VersionStatus:
    """The deployment of the page and its environment."""

    deployment: Deployment
    environments: list[str]
    times: int
    """Number of deployments of the version to this environment."""
    said: VersionVerdict | None
    baseline: OtherVersion | None
    alert: int | None
    ranks_alert: int | None = None
    """The same alert, if ranks of a job diverged."""


@dataclass
class VersionData:
    """Data of the page; `processes` are those of the version, its baseline and other versions of
    the model, newest first."""

    model: WatchedModel
    version: ModelVersion
    standing: VersionStatus
    budgets: Budgets
    now: datetime
    processes: list[ProcessStart]
    events: list[VersionCompilation]
    events_cut: bool
    recordings: Recordings
    answers: list[ProcessCacheAnswers]
    served: list[SeriesCalls]
    findings: list[FindingData]
    parities: list[ParityRow]
    why_eager: EagerBreakdown = field(default_factory=EagerBreakdown)

    @property
    def environment(self) -> str:
        """The environment of the page."""
        return self.standing.deployment.environment

    @property
    def own(self) -> list[ProcessStart]:
        """Processes of the version in this environment."""
        return [
            one
            for one in self.processes
            if one.version_id == self.version.pk and one.environment == self.environment
        ]

    @property
    def theirs(self) -> list[ProcessStart]:
        """Processes of the baseline."""
        baseline = self.standing.baseline
        return [
            one
            for one in self.processes
            if baseline and one.version_id == baseline.id and one.environment == self.environment
        ]

    @property
    def own_calls(self) -> list[SeriesCalls]:
        """Series of the version in this environment."""
        return [
            one
            for one in self.served
            if one.version_id == self.version.pk and one.environment == self.environment
        ]

    @property
    def first_minute(self) -> int:
        """Start of the counted calls."""
        newest = clock.minute_of(self.now.timestamp())
        return max(self.standing.deployment.started_minute, newest - MAX_DAYS * 1440)


def read_version_data(
    *, project_id: int, model_id: int, version_id: int, environment: str = ""
) -> VersionData | None:
    """Reads the page in at most eleven queries; None if the version does not exist or never ran."""
    rows = list(_deployments(project_id, model_id, version_id)[:MAX_DEPLOYMENTS])
    if not rows:
        return None
    here = [row for row in rows if row.environment == environment] or _select_environment(rows)
    standing = _build_status(rows, here)
    newest, now = here[0], clock.now()
    model, pair = newest.model, [version_id, *([standing.baseline.id] if standing.baseline else [])]
    place: dict[str, Any] = {"project_id": project_id, "environment": newest.environment}
    processes = read_process_starts(model_id=model_id, version_ids=pair, **place)
    since = clock.at_minute(newest.started_minute) - BEFORE_DEPLOYMENT
    events, cut, recordings = read_version_compilations(version_id=version_id, since=since, **place)
    missed = any(event.miss for event in events)
    facts = VersionData(
        model=model,
        version=newest.version,
        standing=standing,
        budgets=resolve_budgets(model),
        now=now,
        processes=processes,
        events=events,
        events_cut=cut,
        recordings=recordings,
        answers=_answers(project_id, processes) if missed else [],
        served=[],
        findings=list_version_findings(
            model_id=model_id, version_ids=pair, with_lives=False, **place
        ),
        parities=list_version_parities(version_ids=pair, **place),
    )
    within: dict[str, Any] = {
        "version_id": version_id,
        "first": facts.first_minute,
        "now": clock.minute_of(now.timestamp()),
    }
    facts.served = read_series_calls(model_id=model_id, **within, **place)
    facts.why_eager = read_version_eager_causes(**within, **place)
    return facts


def _deployments(project_id: int, model_id: int, version_id: int) -> QuerySet[Deployment]:
    """Deployments, newest first, each with its verdict, its previous version and its newest open
    alert."""
    rows = Deployment.objects.filter(
        project_id=project_id, model_id=model_id, version_id=version_id
    )
    earlier = Deployment.objects.filter(
        project_id=project_id,
        model_id=model_id,
        environment=OuterRef("environment"),
        started_minute__lte=OuterRef("started_minute"),
    ).exclude(Q(version_id=version_id) | Q(version__name=OTHER))
    before = earlier.order_by("-started_minute", "-pk")
    alerts = build_verdict_alerts_subquery(deployment="pk", live_model="live_model")
    rows = rows.annotate(live_model=Case(When(ended_minute=None, then=F("model_id"))))
    told = rows.annotate(current=FilteredRelation("verdicts", condition=Q(verdicts__current=True)))
    told = told.annotate(
        said_kind=F("current__kind"),
        said_sentence=F("current__sentence"),
        said_cause=F("current__cause"),
        said_since=F("current__since_minute"),
        said_warm_up=F("current__evidence__warm_up"),
        compared_id=F("current__baseline__version_id"),
        compared_name=F("current__baseline__version__name"),
        before_id=Subquery(before.values("version_id")[:1]),
        before_name=Subquery(before.values("version__name")[:1]),
        open_alert=Subquery(alerts.values("number")[:1]),
    )
    return told.select_related("version", "model__project").order_by("-started_minute", "-pk")


def _select_environment(rows: list[Deployment]) -> list[Deployment]:
    """Deployments in the environment of the newest live deployment, else of the newest
    deployment."""
    chosen = next((row for row in rows if row.ended_minute is None), rows[0])
    return [row for row in rows if row.environment == chosen.environment]


def _build_verdict(row: Any) -> VersionVerdict:
    return VersionVerdict(
        row.said_kind,
        row.said_sentence,
        row.said_cause,
        row.said_since,
        warm_up=read_warm_up({"warm_up": row.said_warm_up}),
    )


def _build_status(rows: list[Deployment], here: list[Deployment]) -> VersionStatus:
    row: Any = here[0]
    said = _build_verdict(row) if row.said_kind else None
    stands = (
        resolve_current_verdict(deployment_id=row.pk)
        if said and row.open_alert and not rank_severity(said.kind)
        else None
    )
    if stands is not None:
        said = VersionVerdict(
            stands.kind,
            stands.sentence,
            stands.cause,
            stands.since_minute,
            stands.outlived,
            read_warm_up(stands.evidence),
        )
    baseline = None
    if row.compared_id is not None and row.compared_id != row.version_id:
        baseline = OtherVersion(row.compared_id, row.compared_name, True)
    elif row.before_id is not None:
        baseline = OtherVersion(row.before_id, row.before_name, False)
    environments = sorted({one.environment for one in rows})
    diverged = find_divergence_alert(deployment_id=row.pk) if row.open_alert else None
    return VersionStatus(
        row,
        environments,
        len(here),
        said,
        baseline,
        row.open_alert,
        diverged.number if diverged else None,
    )


def _answers(project_id: int, processes: list[ProcessStart]) -> list[ProcessCacheAnswers]:
    """All of them, because a miss is compared with a warm start."""
    since = min((one.started_at for one in processes), default=None)
    return (
        read_process_answers(
            project_id=project_id, instance_ids=[one.id for one in processes], since=since
        )
        if since
        else []
    )
