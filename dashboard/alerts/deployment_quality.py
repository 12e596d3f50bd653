"""Deployment quality: false verdicts per deployment and false discoveries, from the outcomes of
alerts, next to the rates that the settings promise.

The unit is the deployment, because the rates in Settings are per deployment. The latest graded
alert of a deployment is its label; a verdict without a graded alert is unlabelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q

from dashboard.alerts.alert_quality import (
    FALSE_POSITIVE,
    NOT_RECOVERED,
    PERIOD_DAYS,
    TRUE_POSITIVE,
    Proportion,
    grade_outcome,
)
from dashboard.alerts.models import Alert, AlertCause, AlertEvent, AlertState, EventKind
from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.models import Verdict
from dashboard.regressions.settings_resolver import SettingsResolver
from dashboard.vocabulary.severity import ALERTING_VERDICTS, ROLL_BACK, rank_severity


@dataclass
class SeverityCounts:
    """Deployments with a verdict of at least this severity, by label, and the sum of the rates that
    were set for all judged deployments."""

    kind: str
    deployments: int = 0
    verdicts: int = 0
    accepted: int = 0
    disputed: int = 0
    set_rates: float = 0.0
    default_rate: float = 0.0

    @property
    def unlabelled(self) -> int:
        """Verdicts that are neither accepted nor disputed."""
        return self.verdicts - self.accepted - self.disputed

    @property
    def false_share(self) -> Proportion:
        """Disputed verdicts per judged deployment. Unlabelled verdicts count as right, so the share
        is a lower bound."""
        return Proportion(self.disputed, self.deployments)

    @property
    def most_false(self) -> Proportion:
        """The share if every unlabelled verdict is false."""
        return Proportion(self.disputed + self.unlabelled, self.deployments)

    @property
    def false_discovery(self) -> Proportion:
        """Disputed verdicts among the labelled ones."""
        return Proportion(self.disputed, self.accepted + self.disputed)

    @property
    def nominal(self) -> float:
        """The rate that is set: the mean over the judged deployments."""
        if not self.deployments:
            return self.default_rate
        return round(self.set_rates / self.deployments, 12)  # without the error of a long sum


@dataclass
class DeploymentQuality:
    """Counts of a model, or of the project if there is no model."""

    model_id: int | None
    name: str
    simulated: bool
    severities: list[SeverityCounts] = field(default_factory=list)

    @property
    def deployments(self) -> int:
        """Number of judged deployments."""
        return self.severities[0].deployments


class _Judged(NamedTuple):
    """A judged deployment, and its worst verdict ever."""

    id: int
    model_id: int
    model: str
    simulated: bool
    roll_back: bool
    watch: bool


class _Label(NamedTuple):
    """The worst severity of a deployment's alerts, and its latest grade by severity."""

    worst: str
    grades: dict[str, str]


def read_deployment_quality(*, project: Project) -> list[DeploymentQuality]:
    """Counts of the project, then of its models, most deployments first. Deployments count if they
    started in the last 90 days and were evaluated. Four queries."""
    since = clock.minute_of((clock.now() - timedelta(days=PERIOD_DAYS)).timestamp())
    book, labels = SettingsResolver(project_id=project.pk), _read_labels(project, since)
    total = _start(None, "", False, book.of(project_id=project.pk))
    of_models: dict[int, DeploymentQuality] = {}
    for one in _query_judged(project, since):
        settings = book.of(project_id=project.pk, model_id=one.model_id)
        model = of_models.setdefault(
            one.model_id, _start(one.model_id, one.model, one.simulated, settings)
        )
        total.simulated |= one.simulated
        for counts in (*total.severities, *model.severities):
            _count(counts, one, labels.get(one.id), settings)
    models = sorted(of_models.values(), key=lambda one: (-one.deployments, one.name))
    return [total, *models]


def get_set_rate(settings: Settings, kind: str) -> float:
    """The false-positive rate that the settings promise for a severity, per deployment."""
    return settings.roll_back_alpha if kind == ROLL_BACK else settings.watch_alpha


def _start(
    model_id: int | None, name: str, simulated: bool, settings: Settings
) -> DeploymentQuality:
    counts = [
        SeverityCounts(kind, default_rate=get_set_rate(settings, kind))
        for kind in ALERTING_VERDICTS
    ]
    return DeploymentQuality(model_id, name, simulated, counts)


def _count(
    counts: SeverityCounts, judged: _Judged, label: _Label | None, settings: Settings
) -> None:
    counts.deployments += 1
    counts.set_rates += get_set_rate(settings, counts.kind)
    least = rank_severity(counts.kind)
    verdict = judged.roll_back or (judged.watch and counts.kind != ROLL_BACK)
    if not verdict and (label is None or rank_severity(label.worst) < least):
        return
    counts.verdicts += 1
    grade = label.grades.get(counts.kind) if label else None
    counts.accepted += grade == TRUE_POSITIVE
    counts.disputed += grade == FALSE_POSITIVE


def _query_judged(project: Project, since: int) -> Iterable[_Judged]:
    """Deployments that started since a minute and were compared with a baseline or raised an
    alert."""
    verdicts = Verdict.objects.filter(deployment=OuterRef("pk"))
    roll_back, watch = (Exists(verdicts.filter(kind=kind)) for kind in ALERTING_VERDICTS)
    rows = (
        Deployment.objects.filter(project=project, started_minute__gte=since)
        .exclude(version__name=OTHER)
        .annotate(roll_back=roll_back, watch=watch)
        .filter(
            Q(Exists(verdicts.exclude(baseline=None)))
            | Q(roll_back=True)
            | Q(watch=True)
            | Q(
                Exists(Alert.objects.filter(deployment=OuterRef("pk"), cause=AlertCause.REGRESSION))
            )
        )
    )
    for values in rows.values_list(
        "pk", "model_id", "model__name", "model__simulated", "roll_back", "watch"
    ):
        yield _Judged._make(values)


def _read_labels(project: Project, since: int) -> dict[int, _Label]:
    """The worst alert and the latest grades of each deployment."""
    not_back = AlertEvent.objects.filter(alert=OuterRef("pk"), kind=EventKind.LEVEL_NOT_BACK)
    rows = (
        Alert.objects.filter(
            project=project,
            cause=AlertCause.REGRESSION,
            deployment__started_minute__gte=since,
        )
        .annotate(not_back=Exists(not_back))
        .order_by("opened_at", "pk")
    )
    found: dict[int, _Label] = {}
    for deployment_id, worst, state, outcome, failed in rows.values_list(
        "deployment_id", "worst", "state", "outcome", "not_back"
    ):
        label = found.setdefault(deployment_id, _Label(worst, {}))
        if rank_severity(worst) > rank_severity(label.worst):
            label = found[deployment_id] = label._replace(worst=worst)
        resolved = state == AlertState.RESOLVED
        grade = grade_outcome((NOT_RECOVERED if failed else outcome) if resolved else "")
        if grade in (TRUE_POSITIVE, FALSE_POSITIVE):
            for kind in ALERTING_VERDICTS:
                if rank_severity(worst) >= rank_severity(kind):
                    label.grades[kind] = grade
    return found
