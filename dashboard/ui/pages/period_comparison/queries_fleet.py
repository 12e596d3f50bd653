"""28-day trend of each model of a project, in a number of queries that does not depend on the
number of models."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

from django.core.cache import cache

from dashboard import __version__
from dashboard.alerts.models import Alert, AlertOutcome
from dashboard.common import clock
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.versions.daily_calls import read_project_days
from dashboard.projects.models import Project
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.period_comparison.compute import (
    PERIOD_DAYS,
    CallDay,
    CallGroup,
    PeriodComparison,
    compare_periods,
)
from dashboard.ui.charts.period_comparison.text import (
    Answer,
    PeriodCounts,
    PeriodRow,
    build_compiled_share_row,
    decide_answer,
    format_counts,
    level_row,
    main_sentence,
)
from dashboard.vocabulary import numbers

CACHE_TTL_S = 15 * 60
"""Lifetime of cached sums, in seconds."""
ANSWER_ORDER: list[Answer] = ["worse", "mixed", "better", "same", "unknown", "early"]
ModelPeriods = tuple[str, PeriodComparison]
"""The environment for which a model is reported, and its two periods in that environment."""
ANSWER_LABELS: dict[Answer, str] = {
    "worse": "worse",
    "mixed": "mixed",
    "better": "better",
    "same": "no change",
    "unknown": "not comparable",
    "early": "with too little history",
}


@dataclass(frozen=True)
class ModelPeriodComparison:
    """One model: the answer, its sentence, and the values of its busiest region, if the model can
    be compared."""

    model: WatchedModel
    environment: str
    answer: Answer
    sentence: str
    p50: PeriodRow | None
    p99: PeriodRow | None
    served: PeriodRow | None

    @property
    def word(self) -> str:
        """The answer as text."""
        return ANSWER_LABELS[self.answer]

    @property
    def mark(self) -> str:
        """Name of the icon."""
        return (
            self.answer
            if self.answer in ("better", "worse")
            else "same"
            if self.answer == "same"
            else "state-degraded"
        )

    @property
    def numbers(self) -> list[tuple[str, PeriodRow | None]]:
        """The cells of the row, each with its name."""
        return [("p50", self.p50), ("p99", self.p99), ("Served compiled", self.served)]


@dataclass(frozen=True)
class FleetPeriodComparison:
    """All models, regressions first, and the counts of all models."""

    models: list[ModelPeriodComparison]
    counted: str

    @property
    def compared(self) -> list[ModelPeriodComparison]:
        """Models with a result."""
        return [one for one in self.models if one.p50]

    @property
    def others(self) -> list[ModelPeriodComparison]:
        """Models without a result, each with its reason."""
        return [one for one in self.models if not one.p50]

    @property
    def headline(self) -> str:
        """Number of models for each answer."""
        answers = Counter(one.answer for one in self.models)
        said = [
            f"{numbers.number(answers[answer])} {ANSWER_LABELS[answer]}"
            for answer in ANSWER_ORDER
            if answers[answer]
        ]
        return (
            f"{numbers.plural(len(self.models), 'model')}: {', '.join(said)}."
            if said
            else "No calls in the last 56 days."
        )


def read_fleet_period_comparison(
    *, project: Project, environment: str, today: int
) -> FleetPeriodComparison:
    """Six queries, four without history, fewer with cached sums. Without an environment, each model
    is reported in the environment with most of its calls."""
    found = _read_cached(project, environment, today)
    models, none = (
        WatchedModel.objects.filter(project=project).order_by("name"),
        ("", PeriodComparison(today, None)),
    )
    rows = [_model_weeks(model, *found.get(model.pk, none)) for model in models]
    if environment:
        rows = [row for row in rows if row.environment]
    known = any(row.answer != "early" for row in rows)
    counted = (
        _format_counts(project, environment, today) if known else ""
    )  # without history, an empty list is not an improvement
    return FleetPeriodComparison(
        sorted(rows, key=lambda row: ANSWER_ORDER.index(row.answer)), counted
    )


def _read_cached(project: Project, environment: str, today: int) -> dict[int, ModelPeriods]:
    """Cached by model. Past days change only by late reports, and each request for a large fleet
    would add up 200,000 hours."""
    asked = f"{__version__} {project.pk} {today} {environment}"
    key = f"fleet-weeks-{blake2b(asked.encode(), digest_size=12).hexdigest()}"
    found: dict[int, ModelPeriods] | None = cache.get(key)
    if found is None:
        found = _compute_periods(project, environment, today)
        if found:
            cache.set(key, found, CACHE_TTL_S)
    return found


def _compute_periods(project: Project, environment: str, today: int) -> dict[int, ModelPeriods]:
    days: dict[int, dict[str, list[CallDay]]] = defaultdict(lambda: defaultdict(list))
    for model_id, where, row in read_project_days(
        project_id=project.pk,
        environment=environment,
        first_day=today - 2 * PERIOD_DAYS,
        last_day=today,
    ):
        cell = CallGroup(row.gpu, row.world_size, row.region, row.bucket)
        days[model_id][where].append(CallDay(cell, *row[4:]))
    busiest = {
        id: max(places, key=lambda where: sum(day.calls for day in places[where]))
        for id, places in days.items()
    }
    return {
        id: (where, compare_periods(days[id][where], today=today)) for id, where in busiest.items()
    }


def _model_weeks(
    model: WatchedModel, environment: str, found: PeriodComparison
) -> ModelPeriodComparison:
    main = next(iter(found.regions), None)
    p50, p99 = (main.p50, main.p99) if main else (None, None)
    return ModelPeriodComparison(
        model,
        environment,
        decide_answer(found),
        main_sentence(found),
        level_row("p50", main, p50) if main and p50 else None,
        level_row("p99", main, p99) if main and p99 else None,
        build_compiled_share_row(found) if found.served != (None, None) else None,
    )


def _format_counts(project: Project, environment: str, today: int) -> str:
    """Alerts and deployments of both periods, for all models together."""
    middle, first = today - PERIOD_DAYS, today - 2 * PERIOD_DAYS
    runs = Deployment.objects.filter(
        project=project, started_minute__gte=first * 1440, started_minute__lt=today * 1440
    )
    since, until = clock.at_minute(first * 1440), clock.at_minute(today * 1440)
    alerts = Alert.objects.filter(
        project=project, worst=VerdictKind.ROLL_BACK, opened_at__gte=since, opened_at__lt=until
    )
    if environment:
        runs, alerts = (
            runs.filter(environment=environment),
            alerts.filter(deployment__environment=environment),
        )
    opened = list(
        alerts.exclude(outcome=AlertOutcome.DISMISSED).values_list("opened_at", flat=True)
    )
    started = list(runs.values_list("started_minute", flat=True))
    half = since + timedelta(days=PERIOD_DAYS)
    late_runs, late_alerts = (
        sum(minute >= middle * 1440 for minute in started),
        sum(at >= half for at in opened),
    )
    before = PeriodCounts(len(started) - late_runs, len(opened) - late_alerts, 0, None)
    return format_counts(before, PeriodCounts(late_runs, late_alerts, 0, None))
