"""Error budget by day: calls that did not run compiled, of the models with a budget."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import F, Sum

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.budgets import project_budgets
from dashboard.fleet.models import Series, VersionHour, WatchedModel
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls
from dashboard.projects.models import Project

BURN_DAYS = 28
MAX_MODELS = 12


@dataclass
class BudgetDays:
    """One model in all environments: its budget as a share of calls, and by day since 1970 its
    calls with a known mode and those that did not run compiled."""

    model_id: int
    name: str
    simulated: bool
    budget: float
    calls: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    missed: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def allowed(self) -> float:
        """Calls of the period that may run eager."""
        return sum(self.calls.values()) * (1 - self.budget)


def read_budget_days(*, project: Project) -> tuple[list[BudgetDays], int]:
    """The first models with a budget and calls, by name, and the number of the other models with a
    budget; one query for the models and one for their calls."""
    shared = project_budgets(project.settings).served
    models = WatchedModel.objects.filter(project=project).order_by("name")
    if shared is None:
        models = models.exclude(served_budget=None)
    columns = ("pk", "name", "simulated", "served_budget")
    found = [
        BudgetDays(pk, name, simulated, own if own is not None else shared or 0.0)
        for pk, name, simulated, own in models.values_list(*columns)
    ]
    shown = {one.model_id: one for one in found[:MAX_MODELS]}
    if shown:
        _read_calls(project, shown)
    return [one for one in shown.values() if one.allowed], len(found) - len(shown)


def _read_calls(project: Project, shown: dict[int, BudgetDays]) -> None:
    today = clock.minute_of(clock.unix()) // 1440
    first = today - BURN_DAYS + 1
    series = Series.objects.filter(
        version__model_id__in=shown, outermost=True, last_minute__gte=first * 1440
    ).exclude(stratum__runtime=EAGER_RUNTIME)
    rows = VersionHour.objects.filter(
        project_id=project.pk, day__gte=first, day__lte=today, series_id__in=series.values("pk")
    )
    found, sums = fetch_rows_together(
        series.values_list("pk", "version__model_id"),
        rows.order_by()
        .values_list("series_id", "day")
        .annotate(known=Sum(sum_observed_calls()), served=Sum(F("compiled"))),
    )
    model_of: dict[int, int] = dict(found)
    for id, day, known, served in sums:
        if known:
            one = shown[model_of[id]]
            one.calls[day] += known
            one.missed[day] += max(0.0, known - served)
