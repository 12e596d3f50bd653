"""Whether each model of a project is better than in the four weeks before, in a number of queries that does not grow with the models."""

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
from dashboard.fleet.selectors.versions.daily_calls import project_days
from dashboard.projects.models import Project
from dashboard.regressions.models import VerdictKind
from dashboard.ui import words
from dashboard.ui.charts.period_comparison.compute import DAYS, CallDay, Cell, Periods, periods
from dashboard.ui.charts.period_comparison.text import Answer, Beside, PeriodRow, answer_of, counts, level_row, main_sentence, served_row

KEPT = 15 * 60
"""Seconds for which what was added up is kept."""
ORDER: list[Answer] = ["worse", "mixed", "better", "same", "unknown", "early"]
Found = tuple[str, Periods]
"""The environment that a model is told of, and its two periods there."""
WORDS: dict[Answer, str] = {
    "worse": "worse",
    "mixed": "better in part, worse in part",
    "better": "better",
    "same": "as before",
    "unknown": "not comparable",
    "early": "with too little history",
}


@dataclass(frozen=True)
class ModelWeeks:
    """One model: the answer, its sentence, and the numbers of its busiest region, which only a compared model has."""

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
        return WORDS[self.answer]

    @property
    def mark(self) -> str:
        """The name of its shape."""
        return self.answer if self.answer in ("better", "worse") else "same" if self.answer == "same" else "state-degraded"

    @property
    def numbers(self) -> list[tuple[str, PeriodRow | None]]:
        """The cells of its row, each with its name."""
        return [("p50", self.p50), ("p99", self.p99), ("Served compiled", self.served)]


@dataclass(frozen=True)
class FleetWeeks:
    """Every model, what is worse first, and what was counted of all of them."""

    models: list[ModelWeeks]
    counted: str

    @property
    def compared(self) -> list[ModelWeeks]:
        """Models of which something can be said."""
        return [one for one in self.models if one.p50]

    @property
    def others(self) -> list[ModelWeeks]:
        """Models of which nothing can be said yet, each with its reason."""
        return [one for one in self.models if not one.p50]

    @property
    def headline(self) -> str:
        """How many models have which answer."""
        answers = Counter(one.answer for one in self.models)
        said = [f"{words.number(answers[answer])} {WORDS[answer]}" for answer in ORDER if answers[answer]]
        return f"Of {words.plural(len(self.models), 'model')}: {', '.join(said)}." if said else "No model was called in these 56 days."


def fleet_weeks(*, project: Project, environment: str, today: int) -> FleetWeeks:
    """Six queries, four without history, fewer than that from what is kept. Where no environment is named, a model is told of in the one
    in which it has the most calls."""
    found = _kept(project, environment, today)
    models, none = WatchedModel.objects.filter(project=project).order_by("name"), ("", Periods(today, None))
    rows = [_model_weeks(model, *found.get(model.pk, none)) for model in models]
    if environment:
        rows = [row for row in rows if row.environment]
    known = any(row.answer != "early" for row in rows)
    counted = _counted(project, environment, today) if known else ""  # none before the first call is no improvement since
    return FleetWeeks(sorted(rows, key=lambda row: ORDER.index(row.answer)), counted)


def _kept(project: Project, environment: str, today: int) -> dict[int, Found]:
    """By model. The days are over and change only by what comes late, and every look at a large fleet would add up 200,000 hours."""
    asked = f"{__version__} {project.pk} {today} {environment}"
    key = f"fleet-weeks-{blake2b(asked.encode(), digest_size=12).hexdigest()}"
    found: dict[int, Found] | None = cache.get(key)
    if found is None:
        found = _added_up(project, environment, today)
        if found:
            cache.set(key, found, KEPT)
    return found


def _added_up(project: Project, environment: str, today: int) -> dict[int, Found]:
    days: dict[int, dict[str, list[CallDay]]] = defaultdict(lambda: defaultdict(list))
    for model_id, where, row in project_days(project_id=project.pk, environment=environment, first_day=today - 2 * DAYS, last_day=today):
        cell = Cell(row.gpu, row.world_size, row.region, row.bucket)
        days[model_id][where].append(CallDay(cell, *row[4:]))
    busiest = {id: max(places, key=lambda where: sum(day.calls for day in places[where])) for id, places in days.items()}
    return {id: (where, periods(days[id][where], today=today)) for id, where in busiest.items()}


def _model_weeks(model: WatchedModel, environment: str, found: Periods) -> ModelWeeks:
    main = next(iter(found.regions), None)
    p50, p99 = (main.p50, main.p99) if main else (None, None)
    return ModelWeeks(
        model,
        environment,
        answer_of(found),
        main_sentence(found),
        level_row("p50", main, p50) if main and p50 else None,
        level_row("p99", main, p99) if main and p99 else None,
        served_row(found) if found.served != (None, None) else None,
    )


def _counted(project: Project, environment: str, today: int) -> str:
    """Alerts and deployments of both periods, of every model together."""
    middle, first = today - DAYS, today - 2 * DAYS
    runs = Deployment.objects.filter(project=project, started_minute__gte=first * 1440, started_minute__lt=today * 1440)
    since, until = clock.at_minute(first * 1440), clock.at_minute(today * 1440)
    alerts = Alert.objects.filter(project=project, worst=VerdictKind.ROLL_BACK, opened_at__gte=since, opened_at__lt=until)
    if environment:
        runs, alerts = runs.filter(environment=environment), alerts.filter(deployment__environment=environment)
    opened = list(alerts.exclude(outcome=AlertOutcome.DISMISSED).values_list("opened_at", flat=True))
    started = list(runs.values_list("started_minute", flat=True))
    half = since + timedelta(days=DAYS)
    late_runs, late_alerts = sum(minute >= middle * 1440 for minute in started), sum(at >= half for at in opened)
    before = Beside(len(started) - late_runs, len(opened) - late_alerts, 0, None)
    return counts(before, Beside(late_runs, late_alerts, 0, None))
