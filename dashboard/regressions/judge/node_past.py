"""Node past: the level of a node before the deployment as a covariate of its instances.

A candidate usually takes the place of an instance of the baseline. What its node was slower or
faster by before the deployment is not a change of the version.

Algorithm: analysis of covariance (CUPED).

1. Before the deployment, the samples of each node are averaged by hour. A node's difference in an
   hour is its log level minus the mean of all nodes in that hour and cell. The covariate is its
   mean over the hours: time of day and load of the fleet cancel.
2. The slope of the later difference on the covariate is fitted by least squares within the arms
   of all strata, with one observation of the size of the prior variance at the expected slope. It
   is clipped to 0 to 1.
3. The slope times the covariate is subtracted from each instance. Without a covariate, nothing is
   subtracted: this is slope 0.

Invariants: only minutes before the deployment count; an hour needs two nodes with enough samples;
a node needs `past_minutes` of hours.

Source: Deng, Xu, Kohavi and Walker, Improving the Sensitivity of Online Controlled Experiments by
Utilizing Pre-Experiment Data, WSDM 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.pooled_estimate import Unit
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES, SerialNoise
from dashboard.regressions.judge.settings import RatioMetric


class NodePast:
    """The differences between the nodes of one cell before the deployment."""

    __slots__ = ("_hour", "_noise", "_open", "closed", "hours")

    def __init__(self, noise: SerialNoise) -> None:
        self._noise = noise
        self.hours: dict[str, list[float]] = {}
        """By node: the sum of its differences, and the number of hours."""
        self.closed = 0
        """Number of hours with two nodes or more."""
        self._hour: int | None = None
        self._open: dict[str, list[float]] = {}

    def add(
        self, minute: int, rows: Iterable[InstanceMinute], metric: RatioMetric, least: int
    ) -> None:
        """Adds a minute of the baseline before the deployment."""
        hour = minute // HOUR_MINUTES
        if self._hour is not None and hour != self._hour:
            self.close(least)
        self._hour = hour
        value_of, samples_of, sign = metric.value, metric.samples, metric.worse
        terms: dict[str, list[float]] = {}
        for row in rows:
            value, samples = value_of(row), samples_of(row)
            if row.host and value is not None and samples > 0 and 0.0 < value < math.inf:
                terms.setdefault(row.host, []).append(sign * samples * math.log(value))
                entry = self._open.setdefault(row.host, [0.0, 0.0])
                entry[1] += samples
        for host, found in terms.items():
            self._open[host][0] += math.fsum(found)

    def close(self, least: int) -> None:
        """Ends the open hour."""
        levels = {
            node: total / samples
            for node, (total, samples) in self._open.items()
            if samples >= least
        }
        self._open = {}
        if len(levels) < 2:
            return
        self.closed += 1
        middle = math.fsum(levels.values()) / len(levels)
        self._noise.add(
            self, {node: level - middle for node, level in levels.items()}, 1.0 - 1.0 / len(levels)
        )
        for node, level in levels.items():
            entry = self.hours.setdefault(node, [0.0, 0.0])
            entry[0] += level - middle
            entry[1] += 1.0


def average_pasts(pasts: Iterable[tuple[int, NodePast]], least_hours: float) -> dict[str, float]:
    """The covariate of each node with enough hours. Buckets are weighted by traffic."""
    sums: dict[str, list[float]] = {}
    for weight, past in pasts:
        for node, (difference, hours) in past.hours.items():
            entry = sums.setdefault(node, [0.0, 0.0, 0.0])
            entry[0] += weight * difference
            entry[1] += weight * hours
            entry[2] = max(entry[2], hours)
    return {
        node: difference / weight
        for node, (difference, weight, hours) in sums.items()
        if weight > 0.0 and hours >= least_hours
    }


def fit_slope(
    arms: Iterable[tuple[Mapping[Unit, float], Mapping[Unit, float]]],
    expected_slope: float,
    prior_variance: float,
) -> float:
    """The slope of values on covariates within arms, shrunk to the expected slope. Each arm has its
    values and the covariates of some of its units."""
    both, width = prior_variance * expected_slope, prior_variance
    for values, covariates in arms:
        known = [unit for unit in values if unit in covariates]
        if len(known) < 2:
            continue
        mean_x = math.fsum(covariates[unit] for unit in known) / len(known)
        mean_y = math.fsum(values[unit] for unit in known) / len(known)
        both += math.fsum((covariates[u] - mean_x) * (values[u] - mean_y) for u in known)
        width += math.fsum((covariates[u] - mean_x) ** 2 for u in known)
    return min(1.0, max(0.0, both / width))
