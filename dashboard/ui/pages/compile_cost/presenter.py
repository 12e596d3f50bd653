"""Compile cost as text: GPU-hours, price, bars by day, and the models to fix first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dashboard.common import clock
from dashboard.fleet.metrics.compile_cost import CLASSES, EAGER, MISSES, ModelCost
from dashboard.fleet.models import WatchedModel
from dashboard.ui.charts.cost_bars import CSS, CostBars, build_cost_bars
from dashboard.ui.pages.compile_cost.queries import FleetCost, ModelFix
from dashboard.vocabulary import numbers

HOUR = 3600.0


@dataclass(frozen=True)
class FixRow:
    """One model to fix first. `split` are parts of the bar: class, x and width in percent."""

    model: WatchedModel
    how: str
    finding_id: int | None
    hours: str
    share: str
    money: str
    split: list[tuple[str, str, str]]
    summary: str


@dataclass(frozen=True)
class CostView:
    """The content of the page. `eager` counts the eager calls of unknown cost."""

    total: str
    parts: str
    eager: str
    money: str
    bars: CostBars
    fixes: list[FixRow]
    empty: bool


def build_cost_view(cost: FleetCost, price: float | None) -> CostView:
    """Hours of the latest days, and bars of all days."""
    sums = {
        name: sum(one.total(cost.latest, name) for _, one in cost.costs) / HOUR for name in CLASSES
    }
    unknown = [one for _, one in cost.costs if one.unknown_eager]
    whole = sum(sums.values())
    by_day = {
        name: {
            day: sum(one.by_class[name].get(day, 0.0) for _, one in cost.costs) / HOUR
            for day in cost.days
        }
        for name in CLASSES
    }
    return CostView(
        total=numbers.number(whole),
        parts=", ".join(_part(name, sums[name], bool(unknown)) for name in CLASSES),
        eager=_describe_unknown(unknown),
        money=format_money(whole, price),
        bars=build_cost_bars(cost.days, by_day, f"{clock.now():%H:%M} UTC"),
        fixes=[_fix_row(fix, cost.latest, whole, price) for fix in cost.fixes],
        empty=not any(seconds for days in by_day.values() for seconds in days.values()),
    )


def _part(name: str, hours: float, unknown: bool) -> str:
    if name == EAGER and unknown:
        return f"eager {numbers.number(hours)} or more" if hours else "eager not known"
    return f"{name} {numbers.number(hours)}"


def _describe_unknown(unknown: Iterable[ModelCost]) -> str:
    models = list(unknown)
    if not models:
        return ""
    calls = sum(one.unknown_eager for one in models)
    return (
        f"Eager calls of {numbers.plural(len(models), 'model')} ({numbers.number(calls)} calls) "
        "are not included: the time of an eager or a compiled call is not known."
    )


def format_money(hours: float, price: float | None) -> str:
    """The cost at the project's price; empty without a price."""
    return numbers.number(round(hours * price, 2)) if price is not None else ""


def _fix_row(fix: ModelFix, latest: int, whole: float, price: float | None) -> FixRow:
    hours = {name: fix.cost.total(latest, name) / HOUR for name in CLASSES}
    total = sum(hours.values())
    split, x = [], 0.0
    for css, name in zip(CSS, CLASSES, strict=True):
        width = 100 * hours[name] / total if total else 0.0
        split.append((css, f"{x:.1f}", f"{width:.1f}"))
        x += width
    most = max(CLASSES, key=lambda name: hours[name])
    return FixRow(
        model=fix.model,
        how=fix.remedy or fix.finding or _default_reason(most),
        finding_id=fix.finding_id,
        hours=numbers.number(total),
        share=numbers.percent(total / whole) if whole else "",
        money=format_money(total, price),
        split=split,
        summary=", ".join(f"{name} {numbers.number(hours[name])}" for name in CLASSES)
        + " GPU-hours",
    )


def _default_reason(most: str) -> str:
    if most == MISSES:
        return "Keep the compile cache between starts."
    if most == EAGER:
        return "Remove the cause of eager calls."
    return "No finding. Compilations of new starts and shapes."


def serialize_costs(cost: FleetCost, price: float | None) -> list[dict[str, Any]]:
    """One row per model and day with a cost, in GPU-seconds."""
    return [
        {
            "model": model.name,
            "day": f"{clock.at_minute(day * 1440):%Y-%m-%d}",
            **{
                f"{name.replace(' ', '_')}_gpu_seconds": one.by_class[name].get(day, 0.0)
                if name != EAGER or not one.unknown_eager or one.by_class[name].get(day)
                else None
                for name in CLASSES
            },
            "price_per_gpu_hour": price,
        }
        for model, one in cost.costs
        for day in cost.days
        if any(one.by_class[name].get(day) for name in CLASSES)
    ]
