"""How long it takes until several replicas that start together are warm: an estimate from the starts that were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from dashboard.regressions.judge.estimate import t_quantile
from dashboard.ui import words

ENOUGH = 3
LEAST_SPREAD = 0.03
MOST_REPLICAS = 10_000
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9


@dataclass(frozen=True)
class Forecast:
    """Seconds until the last of `replicas` is warm, with 8 chances in 10 between `low` and `high`; from `starts` starts of one kind."""

    kind: str
    replicas: int
    starts: int
    middle: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """What it says."""
        if self.middle is None or self.low is None or self.high is None:
            return f"not enough starts to tell, {self.starts} of {ENOUGH}"
        return f"{words.duration(self.middle)}, 8 in 10 between {words.duration(self.low)} and {words.duration(self.high)}"


def forecast(kind: str, totals: Sequence[float], replicas: int) -> Forecast:
    """The slowest of `replicas` starts that are drawn like those that were seen, on a log scale; the fewer were seen, the wider."""
    logs = [math.log(total) for total in totals if total > 0]
    if len(logs) < ENOUGH:
        return Forecast(kind, replicas, len(logs))
    spread = max(stdev(logs), LEAST_SPREAD) * math.sqrt(1 + 1 / len(logs))

    def at(probability: float) -> float:
        # The slowest is below a time when all are, each independently of the others.
        tail = -math.expm1(math.log(probability) / replicas)
        return math.exp(fmean(logs) + t_quantile(len(logs) - 1, tail) * spread)

    return Forecast(kind, replicas, len(logs), at(MIDDLE), at(LOW), at(HIGH))


def forecasts(cold: Sequence[float], warm: Sequence[float], replicas: int) -> list[Forecast]:
    """One for starts that the caches served and one for those they did not, where both were seen; else one for all."""
    if cold and warm:
        return [forecast("with warm caches", warm, replicas), forecast("with cold caches", cold, replicas)]
    return [forecast("as its starts so far", [*cold, *warm], replicas)] if cold or warm else []
