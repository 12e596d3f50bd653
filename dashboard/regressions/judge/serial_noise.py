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
MAX_KEPT_UNITS = 4000


class SerialNoise:
    """The noise of one series. `assumed` is the prior variance of an hourly mean within a unit."""

    __slots__ = ("_assumed", "_df", "_prior_df", "_squares", "_units")

    def __init__(self, assumed: float, prior_df: int) -> None:
        self._assumed, self._prior_df, self._df = assumed, prior_df, 0.0
        self._squares: dict[object, float] = {}
        """By scope: scopes of one minute arrive in any order."""
        self._units: dict[tuple[object, Unit], tuple[int, float]] = {}

    def add(self, scope: object, differences: Mapping[Unit, float], share: float) -> None:
        """Adds the mean differences of one hour. Units are compared with themselves within a
        `scope`. `share` is the part of a unit's variance that such a difference has."""
        squares = self._squares.get(scope, 0.0)
        if len(self._units) > MAX_KEPT_UNITS:
            # Pods are replaced often; those that are gone have added their squares.
            self._units = {
                key: known
                for key, known in self._units.items()
                if key[0] != scope or key[1] in differences
            }
        for unit, value in sorted(differences.items(), key=lambda item: str(item[0])):
            count, mean = self._units.get((scope, unit), (0, 0.0))
            away = value - mean
            mean += away / (count + 1)
            if count:
                squares += away * (value - mean) / share
                self._df += 1.0
            self._units[scope, unit] = count + 1, mean
        self._squares[scope] = squares

    @property
    def hour_variance(self) -> float:
        """The variance of an hourly mean within a unit."""
        squares = math.fsum(self._squares.values())
        return (self._prior_df * self._assumed + squares) / (self._prior_df + self._df)

    @property
    def minute_sigma(self) -> float:
        """Standard deviation of one instance between minutes."""
        return math.sqrt(MAX_INFLATION * self.hour_variance)

    def excess(self, minutes: float) -> float:
        """What the measured noise adds to the variance between instances after these minutes."""
        # Throttled hosts and drifting nodes do not average out like calls.
        scale = min(MAX_INFLATION, math.sqrt(HOUR_MINUTES / max(minutes, 1.0)))
        return max(0.0, self.hour_variance - self._assumed) * scale

    def window_variance(self, minutes: int) -> float:
        """The variance of a mean over a window within a unit."""
        return (1.0 if minutes <= HOUR_MINUTES else LONG_WINDOW_SHARE) * self.hour_variance
