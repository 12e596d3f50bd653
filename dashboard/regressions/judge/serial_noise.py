"""Serial noise: the variance of one instance between hours, measured on the fleet itself.

Busy neighbours, throttled hosts and collections of garbage move an instance for minutes to hours.
How much differs between fleets by a factor of ten, so the estimate must not assume it.

Algorithm: the within-unit variance of hourly mean differences, by Welford's recurrence per unit,
pooled over units and shrunk to the prior with `prior_df` degrees of freedom. Before the deployment,
the units are the nodes of the baseline; since then, the instances of the baseline. A difference
from a mean of n units has only 1 - 1/n of the variance of a unit, which is corrected. Next to a
single baseline instance, the candidate's hours count, because the baseline has no difference.

Source: Welford, Note on a Method for Calculating Corrected Sums of Squares and Products,
Technometrics 4, 1962.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.pooled_estimate import Unit

MAX_INFLATION = 3.0
"""Upper bound on the noise of less than an hour, relative to an hour."""
LONG_WINDOW_SHARE = 0.4
"""The variance of a mean over four hours, relative to an hour: minutes are correlated."""
HOUR_MINUTES = 60


class SerialNoise:
    """Squares and degrees of freedom within units."""

    __slots__ = ("_squares", "_units", "df")

    def __init__(self) -> None:
        self.df = 0.0
        self._squares: dict[object, float] = {}
        """By scope: scopes of one minute arrive in any order."""
        self._units: dict[tuple[object, Unit], tuple[int, float]] = {}

    def add(self, scope: object, differences: Mapping[Unit, float], share: float) -> None:
        """Adds the mean differences of one hour. Units are compared with themselves within a
        `scope`. `share` is the part of a unit's variance that such a difference has."""
        squares = self._squares.get(scope, 0.0)
        for unit, value in sorted(differences.items(), key=lambda item: str(item[0])):
            count, mean = self._units.get((scope, unit), (0, 0.0))
            away = value - mean
            mean += away / (count + 1)
            if count:
                squares += away * (value - mean) / share
                self.df += 1.0
            self._units[scope, unit] = count + 1, mean
        self._squares[scope] = squares

    def hour_variance(self, prior_variance: float, prior_df: int) -> float:
        """The variance of an hourly mean within a unit."""
        squares = math.fsum(self._squares.values())
        return (prior_df * prior_variance + squares) / (prior_df + self.df)


def excess_variance(hour_variance: float, assumed: float, minutes: float) -> float:
    """What the measured noise adds to the variance between instances after so many minutes."""
    # Throttled hosts and drifting nodes do not average out like calls.
    scale = min(MAX_INFLATION, math.sqrt(HOUR_MINUTES / max(minutes, 1.0)))
    return max(0.0, hour_variance - assumed) * scale
