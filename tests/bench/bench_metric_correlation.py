"""Correlation of p50, p99 and throughput in healthy simulated fleets, their effective number, and
the boundary of p50 that weights by this number would give: `python -m
tests.bench.bench_metric_correlation`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import PRODUCTION, Comparison
from dashboard.regressions.judge.error_budget import BudgetVerdict, find_tail, tail_sigmas
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import WHOLE_SHARE
from dashboard.regressions.judge.settings import P50
from tests.bench.fleet_model import Fleet, Floats
from tests.bench.fleet_scenarios import scenarios
from tests.bench.fleet_sim import instance_minutes

LEVELS = ("p50", "p99", "throughput")
MINUTES, DEPLOYMENTS = 120, 4
LAYOUTS = ("1 v 1", "2 v 2", "2 v 3+3")
CONDITIONS = (
    "usual noise",
    "sticky users, another mix of lengths",
    "single hosts throttled",
    "bursts of neighbours",
    "restarts, nodes known",
    "Pareto latencies",
    "bimodal latencies",
    "garbage collection",
)


def list_scores(fleet: Fleet) -> list[float]:
    """The estimate of each level divided by its error, at the end; empty without all levels."""
    comparison = Comparison(0, PRODUCTION)
    for minute, rows in enumerate(instance_minutes(fleet)):
        comparison.add_minute(minute, rows)
    found = {
        series.metric.name: series.estimate.delta / series.estimate.error
        for region in comparison.regions.values()
        for series, _ in region.entries
        if isinstance(series, RatioSeries) and series.estimate
    }
    return [found[name] for name in LEVELS] if found.keys() >= set(LEVELS) else []


def count_effective(correlation: Floats) -> float:
    """The effective number of tests from the eigenvalues of a correlation matrix (Galwey, Genet.
    Epidemiol. 33, 2009): 1 if all are equal, their number if none are correlated."""
    values = np.clip(np.linalg.eigvalsh(correlation), 0.0, None)
    return float(np.sqrt(values).sum() ** 2 / values.sum())


def list_fleets() -> Iterator[tuple[str, Fleet]]:
    """Healthy fleets on the seeds for tuning, with their condition."""
    for scenario in scenarios():
        if scenario.name in CONDITIONS and scenario.layout in LAYOUTS:
            for fleet in scenario.fleets(DEPLOYMENTS, MINUTES, "tuning"):
                yield scenario.name, replace(fleet, history=0, replaces=False)


def describe(name: str, scores: Floats) -> str:
    """One row of the table."""
    found = np.corrcoef(scores.T)
    pairs = ", ".join(f"{value:.2f}" for value in found[np.triu_indices(len(LEVELS), 1)])
    return f"| {name} | {len(scores)} | {pairs} | {count_effective(found):.1f} |"


def main() -> None:
    """Prints the correlations by condition, then the boundaries."""
    scores: dict[str, list[list[float]]] = {}
    for name, fleet in list_fleets():
        found = list_scores(fleet)
        if found:
            scores.setdefault(name, []).append(found)
    print("| condition | fleets | p50 p99, p50 throughput, p99 throughput | effective number |")
    print("|---|---|---|---|")
    for name, rows in scores.items():
        print(describe(name, np.array(rows)))
    every = np.array([row for rows in scores.values() for row in rows])
    print(describe("all", every))
    weights = {metric.name: metric.weight for metric in PRODUCTION.metrics}
    levels = sum(weights[name] for name in LEVELS)
    saved = levels * (1.0 - count_effective(np.corrcoef(every.T)) / len(LEVELS))
    growth = P50.prior_variance[0][1] / P50.prior_variance[-1][1]
    verdicts: tuple[BudgetVerdict, ...] = ("roll_back", "watch")
    for verdict in verdicts:
        part = PRODUCTION.budget().part(P50, verdict)
        alpha = PRODUCTION.roll_back_alpha if verdict == "roll_back" else PRODUCTION.watch_alpha
        total = alpha * P50.weight / part
        fixed, fewer = (
            tail_sigmas(find_tail(WHOLE_SHARE * part * factor, growth))
            for factor in (1.0, total / (total - saved))
        )
        print(
            f"{verdict}: boundary of p50 {fixed:.2f} standard errors; {fewer:.2f} with the effective number"
        )


if __name__ == "__main__":
    main()
