"""Alert quality: the outcome of each alert, from operators' answers and observed rollbacks, and
rollbacks that no alert preceded."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Exists, OuterRef

from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    AlertOutcome,
    AlertState,
    EventKind,
)
from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.fold.live_spans import GONE_AFTER_MINUTES
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import VerdictKind
from dashboard.vocabulary.severity import ALERTING_VERDICTS

PERIOD_DAYS = 90
MIN_GRADED_ALERTS = 10
"""Minimum number of graded alerts for a percentage; with fewer, the percentage is too imprecise."""

TRUE_POSITIVE, FALSE_POSITIVE, NOT_GRADED = "right", "false", "not graded"
NOT_RECOVERED = "not_helped"
OUTCOME_GRADES = {
    AlertOutcome.ROLLED_BACK: TRUE_POSITIVE,
    AlertOutcome.ACCEPTED: TRUE_POSITIVE,
    AlertOutcome.DISMISSED: FALSE_POSITIVE,
    NOT_RECOVERED: FALSE_POSITIVE,
}
"""Other outcomes are not graded: Resolved means only that a person closed the alert, not that the
alert was right."""


@dataclass(frozen=True)
class Proportion:
    """A part of a whole, with the 95% Wilson interval of the true share."""

    part: int
    whole: int

    @property
    def enough(self) -> bool:
        """True if there are enough graded alerts to show a percentage."""
        return self.whole >= MIN_GRADED_ALERTS

    @property
    def value(self) -> float | None:
        """The share; None if the whole is zero."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end of the 95% interval; None if the whole is zero."""
        if not self.whole:
            return None
        z, n, share = 1.959964, self.whole, self.part / self.whole
        middle, half = (
            share + z * z / (2 * n),
            z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)),
        )
        return max(0.0, (middle - half) / (1 + z * z / n)), min(
            1.0, (middle + half) / (1 + z * z / n)
        )


@dataclass
class OutcomeCounts:
    """Alerts with the same worst verdict, counted by outcome; an empty outcome is an open alert."""

    worst: str
    outcomes: Counter[str] = field(default_factory=Counter)

    def count(self, grade: str) -> int:
        """Number of alerts with this grade."""
        return sum(
            count for outcome, count in self.outcomes.items() if grade_outcome(outcome) == grade
        )

    @property
    def precision(self) -> Proportion:
        """Share of true positives among the graded alerts."""
        right = self.count(TRUE_POSITIVE)
        return Proportion(right, right + self.count(FALSE_POSITIVE))


@dataclass(frozen=True)
class RollbackCounts:
    """Rolled-back deployments, counted by the worst alert that preceded the rollback; `recall`
    counts ROLL BACK alerts only."""

    told: int
    watched: int
    missed: int

    @property
    def recall(self) -> Proportion:
        """A lower bound: people also roll back for reasons that these measurements do not cover."""
        return Proportion(self.told, self.told + self.watched + self.missed)


@dataclass(frozen=True)
class AlertQuality:
    """The content of the alert quality page."""

    graded: list[OutcomeCounts]
    roll_backs: RollbackCounts
    simulated: int


def grade_outcome(outcome: str) -> str:
    """The grade of an outcome: true positive, false positive or not graded."""
    return OUTCOME_GRADES.get(outcome, NOT_GRADED)


def read_alert_quality(*, project: Project) -> AlertQuality:
    """Alert quality of a project over the last 90 days; two queries."""
    since = clock.now() - timedelta(days=PERIOD_DAYS)
    not_back = AlertEvent.objects.filter(alert=OuterRef("pk"), kind=EventKind.LEVEL_NOT_BACK)
    rows = Alert.objects.filter(
        project=project, cause=AlertCause.REGRESSION, opened_at__gte=since
    ).annotate(not_back=Exists(not_back))
    graded = {str(kind): OutcomeCounts(kind) for kind in ALERTING_VERDICTS}
    simulated = 0
    for worst, state, outcome, helped_not, made in rows.values_list(
        "worst", "state", "outcome", "not_back", "deployment__model__simulated"
    ):
        became = "" if state != AlertState.RESOLVED else NOT_RECOVERED if helped_not else outcome
        graded.setdefault(worst, OutcomeCounts(worst)).outcomes[became] += 1
        simulated += made
    return AlertQuality(
        list(graded.values()),
        _count_rollbacks(project, clock.minute_of(since.timestamp())),
        simulated,
    )


def _count_rollbacks(project: Project, since: int) -> RollbackCounts:
    """Counts rollbacks: deployments that an alert saw rolled back, and ended deployments after
    which an earlier version kept running and no later version did."""
    beside = Deployment.objects.filter(
        model=OuterRef("model"),
        environment=OuterRef("environment"),
        started_minute__lte=OuterRef("ended_minute"),
        last_minute__gt=OuterRef("ended_minute") + GONE_AFTER_MINUTES,
    ).exclude(version__name=OTHER)
    alerts = Alert.objects.filter(deployment=OuterRef("pk"), cause=AlertCause.REGRESSION)
    rows = (
        Deployment.objects.filter(project=project, ended_minute__gte=since)
        .exclude(version__name=OTHER)
        .annotate(
            earlier=Exists(
                beside.filter(version__first_seen_at__lt=OuterRef("version__first_seen_at"))
            ),
            later=Exists(
                beside.filter(version__first_seen_at__gt=OuterRef("version__first_seen_at"))
            ),
            told=Exists(alerts.filter(worst=VerdictKind.ROLL_BACK)),
            alerted=Exists(alerts),
            seen=Exists(alerts.filter(outcome=AlertOutcome.ROLLED_BACK)),
        )
    )
    found: Counter[str] = Counter()
    for earlier, later, told, alerted, seen in rows.values_list(
        "earlier", "later", "told", "alerted", "seen"
    ):
        if seen or (earlier and not later):
            found["told" if told else "watched" if alerted else "missed"] += 1
    return RollbackCounts(found["told"], found["watched"], found["missed"])
