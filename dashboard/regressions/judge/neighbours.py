"""Neighbours: other models on the same nodes as controls.

A throttled node, a power cap or a busy rack slows every model on the node. The level of the other
models in the same minute shows it, and the judged level is corrected by a part of it.

Algorithm (CUPED with a covariate of the same minute):

1. The level of a neighbour is the log of its p50 less its own mean on the day before the
   deployment. A node's level is the mean over its neighbours, by calls, less the median of all
   nodes: what most nodes have in common may be the neighbours' own load. A neighbour without
   LEAST_MINUTES before the deployment does not count: its version may be new.
2. The slope is fitted on the day before the deployment. In each hour, cell and node, the level of
   the baseline and of the neighbours are taken less the mean over nodes, and less the mean of the
   node over hours. What all nodes have in common, like the time of day, therefore does not count.
3. The slope is shrunk to 0 by PRIOR_HOURS hours of the usual noise, and clipped to 0 to 1. Where
   neighbours do not move with the model, nothing is subtracted.

Invariants: without a slope, or with neighbours on fewer than LEAST_NODES nodes, nothing changes; a
node without neighbours in a minute is not corrected; minutes since the deployment do not change the
slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES
from dashboard.regressions.judge.settings import RatioMetric, Settings

LEAST_MINUTES = 60
LEAST_NODES = 3
PRIOR_HOURS = 24.0
SMALLEST_SLOPE = 0.2
"""A smaller slope is treated as 0: it would add more noise than it removes."""

Rows = list[InstanceMinute]
Hours = dict[tuple[object, str, int], list[float]]
"""Sums of levels times weights, and of weights, by cell, node and hour."""


class NeighbourMinute(NamedTuple):
    """One series of another model on a node in one minute."""

    minute: int
    node: str
    series: object
    calls: int
    p50: float


class Neighbours:
    """The levels of the neighbours of the current minute, by node, and their slope by metric."""

    def __init__(self) -> None:
        self.levels: dict[str, float] = {}
        self.slopes: dict[str, float] = {}
        self._means: dict[object, list[float]] = {}

    def learn(self, rows: Iterable[NeighbourMinute]) -> None:
        """Adds a minute before the deployment to the means of the neighbours."""
        for row in rows:
            entry = self._means.setdefault(row.series, [0.0, 0.0])
            entry[0] += math.log(row.p50)
            entry[1] += 1.0

    def step(self, rows: Iterable[NeighbourMinute]) -> None:
        """Sets the levels of the current minute."""
        sums: dict[str, list[float]] = {}
        for row in rows:
            mean = self._means.get(row.series)
            if mean is not None and mean[1] >= LEAST_MINUTES:
                entry = sums.setdefault(row.node, [0.0, 0.0])
                entry[0] += row.calls * (math.log(row.p50) - mean[0] / mean[1])
                entry[1] += row.calls
        levels = {node: total / calls for node, (total, calls) in sums.items()}
        middle = median(levels.values()) if len(levels) >= LEAST_NODES else 0.0
        known = levels.items() if len(levels) >= LEAST_NODES else ()
        self.levels = {node: level - middle for node, level in known}

    def control(self, settings: Settings) -> Settings:
        """The settings with levels less what the neighbours explain."""
        metrics = tuple(
            replace(metric, value=self._correct(metric), controlled=True)
            if isinstance(metric, RatioMetric) and metric.name in self.slopes
            else metric
            for metric in settings.metrics
        )
        return replace(settings, metrics=metrics)

    def _correct(self, metric: RatioMetric) -> Callable[[InstanceMinute], float | None]:
        slope, value_of = -metric.worse * self.slopes[metric.name], metric.value

        def read(row: InstanceMinute) -> float | None:
            value, level = value_of(row), self.levels.get(row.host)
            return value if value is None or level is None else value * math.exp(slope * level)

        return read


def fit_neighbours(
    minutes: Iterable[tuple[int, Rows, list[NeighbourMinute]]], settings: Settings
) -> Neighbours:
    """The neighbours with their slopes, from the minutes before the deployment: each with the rows
    of the baseline and of the neighbours."""
    known, found = list(minutes), Neighbours()
    for _, _, neighbours in known:
        found.learn(neighbours)
    metrics = [one for one in settings.metrics if isinstance(one, RatioMetric)]
    own: dict[str, Hours] = {metric.name: {} for metric in metrics}
    others: Hours = {}
    for minute, rows, neighbours in known:
        found.step(neighbours)
        hour = minute // HOUR_MINUTES
        for node, level in found.levels.items():
            add_level(others, ("", node, hour), level, 1)
        on_nodes = [row for row in rows if row.host in found.levels]
        for metric in metrics:
            add_rows(own[metric.name], on_nodes, hour, metric)
    for metric in metrics:
        slope = fit_slope(own[metric.name], others, metric.own_share * metric.prior_variance[0][1])
        if slope >= SMALLEST_SLOPE:
            found.slopes[metric.name] = slope
    return found


def add_rows(hours: Hours, rows: Rows, hour: int, metric: RatioMetric) -> None:
    """Adds the levels of a minute to their hour."""
    for row in rows:
        value, samples = metric.value(row), metric.samples(row)
        if value is not None and samples > 0 and 0.0 < value < math.inf:
            cell = (row.region, row.stratum, row.bucket)
            level = metric.worse * math.log(value)
            add_level(hours, (cell, row.host, hour), level, samples)


def add_level(hours: Hours, key: tuple[object, str, int], level: float, weight: int) -> None:
    """Adds a level to its hour."""
    entry = hours.setdefault(key, [0.0, 0.0])
    entry[0] += weight * level
    entry[1] += weight


def fit_slope(own: Hours, others: Hours, noise: float) -> float:
    """The slope of the model's levels on those of the neighbours, within nodes and hours."""
    by_hour: dict[tuple[object, int], dict[str, tuple[float, float]]] = {}
    for (cell, node, hour), (total, weight) in own.items():
        known = others.get(("", node, hour))
        if known is not None:
            level = total / weight, known[0] / known[1]
            by_hour.setdefault((cell, hour), {})[node] = level
    apart: dict[tuple[object, str], list[tuple[float, float]]] = {}
    for (cell, _), nodes in by_hour.items():
        if len(nodes) > 1:
            middle = average(nodes.values())
            for node, (y, x) in nodes.items():
                apart.setdefault((cell, node), []).append((y - middle[0], x - middle[1]))
    both, width = 0.0, PRIOR_HOURS * noise
    for pairs in apart.values():
        middle = average(pairs)
        both += math.fsum((y - middle[0]) * (x - middle[1]) for y, x in pairs)
        width += math.fsum((x - middle[1]) ** 2 for _, x in pairs)
    return min(1.0, max(0.0, both / width))


def average(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The means of both numbers."""
    known = list(pairs)
    count = len(known)
    return math.fsum(y for y, _ in known) / count, math.fsum(x for _, x in known) / count
