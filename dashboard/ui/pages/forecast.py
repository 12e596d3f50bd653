"""How long it takes until several replicas that start together are warm: an estimate from the starts that were seen."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from dashboard.ui import words

ENOUGH = 3
LEAST_SPREAD = 0.03
MOST_REPLICAS = 10_000
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
DRAWS, NORMAL = 1000, NormalDist()


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
    drawn = sorted(_slowest(logs, replicas))
    low, middle, high = (math.exp(drawn[int(part * DRAWS)]) for part in (LOW, MIDDLE, HIGH))
    return Forecast(kind, replicas, len(logs), middle, low, high)


def _slowest(logs: Sequence[float], replicas: int) -> Iterator[float]:
    """The slowest of a rollout, drawn often. All replicas of one share what is not known of the mean and of the spread, so that few starts
    that were seen do not make each replica's time another guess; the draws are the same for the same starts."""
    mean, spread, freedom = fmean(logs), max(stdev(logs), LEAST_SPREAD), len(logs) - 1
    chance = random.Random(0)
    for _ in range(DRAWS):
        own = spread * math.sqrt(freedom / chance.gammavariate(freedom / 2, 2.0))
        centre = chance.gauss(mean, own / math.sqrt(len(logs)))
        # The slowest is below a time when all are.
        tail = min(max((1.0 - chance.random()) ** (1 / replicas), 1e-12), 1.0 - 1e-12)
        yield centre + own * NORMAL.inv_cdf(tail)


def forecasts(cold: Sequence[float], warm: Sequence[float], replicas: int) -> list[Forecast]:
    """One for starts that the caches served and one for those they did not, where both were seen; else one for all."""
    if cold and warm:
        return [forecast("with warm caches", warm, replicas), forecast("with cold caches", cold, replicas)]
    return [forecast("as its starts so far", [*cold, *warm], replicas)] if cold or warm else []
