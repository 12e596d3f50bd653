"""Status of a version in one environment for its JSON: deployment, verdict, baseline and alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery, When

from dashboard.alerts.current_verdict import build_verdict_alerts_subquery, resolve_current_verdict
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.regressions.evidence_reader import read_warm_up
from dashboard.regressions.models import RetainedVerdict
from dashboard.regressions.stored_evidence import StoredWarmUp
from dashboard.ui.pages.version.queries import VersionName
from dashboard.vocabulary.severity import rank_severity

MAX_DEPLOYMENTS = 60


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
class VersionStatus:
    """The newest deployment of a version in one environment."""

    deployment: Deployment
    said: VersionVerdict | None
    baseline: VersionName | None


def read_version_status(
    *, project_id: int, model_id: int, version_id: int, environment: str = ""
) -> VersionStatus | None:
    """Reads the status in at most two queries; None if the version does not exist or never ran."""
    rows = list(_deployments(project_id, model_id, version_id)[:MAX_DEPLOYMENTS])
    if not rows:
        return None
    here = [row for row in rows if row.environment == environment] or _select_environment(rows)
    return _build_status(here[0])


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


def _build_status(row: Any) -> VersionStatus:
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
        baseline = VersionName(row.compared_id, row.compared_name)
    elif row.before_id is not None:
        baseline = VersionName(row.before_id, row.before_name)
    return VersionStatus(row, said, baseline)
