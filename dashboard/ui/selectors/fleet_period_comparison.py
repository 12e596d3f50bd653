"""Whether each model of a project is better than in the four weeks before, in a number of queries
that does not grow with the models."""

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
"""Seconds for which what was added up is kept."""
ANSWER_ORDER: list[Answer] = ["worse", "mixed", "better", "same", "unknown", "early"]
ModelPeriods = tuple[str, PeriodComparison]
"""The environment that a model is told of, and its two periods there."""
ANSWER_LABELS: dict[Answer, str] = {
    "worse": "worse",
    "mixed": "better in part, worse in part",
    "better": "better",
    "same": "as before",
    "unknown": "not comparable",
    "early": "with too little history",
}


@dataclass(frozen=True)
class ModelPeriodComparison:
    """One model: the answer, its sentence, and the numbers of its busiest region, which only a
    compared model has."""

    model: WatchedModel
    environment: str
    answer: Answer
    sentence: str
    p50: PeriodRow | None
    p99: PeriodRow | None
    served: PeriodRow | None

    @property
    def word(self) -> str:
        """The answer in words."""
        return ANSWER_LABELS[self.answer]

    @property
    def mark(self) -> str:
        """The name of its shape."""
        return (
            self.answer
            if self.answer in ("better", "worse")
            else "same"
            if self.answer == "same"
            else "state-degraded"
        )

    @property
    def numbers(self) -> list[tuple[str, PeriodRow | None]]:
        """The cells of its row, each with its name."""
        return [("p50", self.p50), ("p99", self.p99), ("Served compiled", self.served)]


@dataclass(frozen=True)
class FleetPeriodComparison:
    """Every model, what is worse first, and what was counted of all of them."""

    models: list[ModelPeriodComparison]
    counted: str

    @property
    def compared(self) -> list[ModelPeriodComparison]:
        """Models of which something can be said."""
        return [one for one in self.models if one.p50]

    @property
    def others(self) -> list[ModelPeriodComparison]:
        """Models of which nothing can be said yet, each with its reason."""
        return [one for one in self.models if not one.p50]

    @property
    def headline(self) -> str:
        """How many models have which answer."""
        answers = Counter(one.answer for one in self.models)
        said = [
            f"{numbers.number(answers[answer])} {ANSWER_LABELS[answer]}"
            for answer in ANSWER_ORDER
            if answers[answer]
        ]
        return (
            f"Of {numbers.plural(len(self.models), 'model')}: {', '.join(said)}."
            if said
            else "No model was called in these 56 days."
        )


def read_fleet_period_comparison(
    *, project: Project, environment: str, today: int
) -> FleetPeriodComparison:
    """Six queries, four without history, fewer than that from what is kept. Where no environment is
    named, a model is told of in the one in which it has the most calls."""
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
    )  # none before the first call is no improvement since
    return FleetPeriodComparison(
        sorted(rows, key=lambda row: ANSWER_ORDER.index(row.answer)), counted
    )


def _read_cached(project: Project, environment: str, today: int) -> dict[int, ModelPeriods]:
    """By model. The days are over and change only by what comes late, and every look at a large
    fleet would add up 200,000 hours."""
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
    """Alerts and deployments of both periods, of every model together."""
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
