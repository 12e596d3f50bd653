"""Compile cost of a project and the most expensive findings of its most expensive models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from dashboard.fleet.metrics.compile_cost import ModelCost
from dashboard.fleet.models import FindingVersion, WatchedModel
from dashboard.fleet.selectors.compilations.compile_cost import read_compile_costs
from dashboard.ui.pages.findings.remedies import find_remedy

DAYS, LATEST_DAYS, FIXES = 14, 7, 5
MAX_FINDINGS = 200


@dataclass(frozen=True)
class ModelFix:
    """A model to fix first: its cost, and the finding that costs most, with its remedy."""

    model: WatchedModel
    cost: ModelCost
    finding_id: int | None = None
    finding: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class FleetCost:
    """The costs of all models, in order of the latest days."""

    days: list[int]
    latest: int
    """First day of the latest days."""
    costs: list[tuple[WatchedModel, ModelCost]]
    fixes: list[ModelFix]


def read_fleet_cost(*, project_id: int, environment: str, now: datetime) -> FleetCost:
    """The costs of the last days, today included; eight queries."""
    today = int(now.timestamp() // 86400)
    days = list(range(today - DAYS + 1, today + 1))
    latest = today - LATEST_DAYS + 1
    costs = read_compile_costs(
        project_id=project_id, first_day=days[0], last_day=today, environment=environment
    )
    models = WatchedModel.objects.in_bulk(list(costs))
    ordered = sorted(
        ((models[pk], cost) for pk, cost in costs.items() if pk in models),
        key=lambda one: (-one[1].total(latest), one[0].name),
    )
    first = [one for one in ordered[:FIXES] if one[1].total(latest) > 0]
    return FleetCost(days, latest, ordered, _read_fixes(first, environment))


def _read_fixes(first: list[tuple[WatchedModel, ModelCost]], environment: str) -> list[ModelFix]:
    rows = FindingVersion.objects.filter(finding__model__in=[model.pk for model, _ in first])
    if environment:
        rows = rows.filter(environment=environment)
    columns = ("finding_id", "finding__model_id", "finding__kind", "finding__text")
    found = (
        rows.values(*columns)
        .annotate(cost=Sum("seconds"), times=Sum("count"))
        .order_by("-cost", "-times", "finding_id")
    )
    of_model: dict[int, tuple[int, str, str]] = {}
    for pk, model, kind, text in found.values_list(*columns)[:MAX_FINDINGS]:
        remedy = find_remedy(kind, text)
        if model not in of_model or (remedy and not of_model[model][2]):
            of_model[model] = (pk, text, remedy)
    return [ModelFix(model, cost, *of_model.get(model.pk, (None, "", ""))) for model, cost in first]
