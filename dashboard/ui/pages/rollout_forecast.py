"""How long a roll-out takes until all its replicas are warm: an estimate from the starts that were
seen."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, stdev

from dashboard.vocabulary import numbers

ENOUGH = 3
LEAST_SPREAD = 0.03
MOST_REPLICAS = 10_000
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
DRAWS, NORMAL = 1000, NormalDist()
MOST_GROUPS = 40
"""Groups of a roll-out that are drawn; of more than that each stands for several."""


@dataclass(frozen=True)
class Forecast:
    """Seconds until the last of `replicas` is warm, which start `at_once` together, the next ones
    when those are warm, with 8 chances in 10 between `low` and `high`; from `starts` starts of one
    kind."""

    kind: str
    replicas: int
    starts: int
    middle: float | None = None
    low: float | None = None
    high: float | None = None
    at_once: int = 0

    @property
    def text(self) -> str:
        """What it says."""
        if self.middle is None or self.low is None or self.high is None:
            return f"not enough starts to tell, {self.starts} of {ENOUGH}"
        return (
            f"{numbers.duration(self.middle)}, 8 in 10 between {numbers.duration(self.low)} and "
            f"{numbers.duration(self.high)}"
        )


def forecast_rollout(
    kind: str, totals: Sequence[float], replicas: int, at_once: int | None = None
) -> Forecast:
    """Each group takes as long as the slowest of so many starts that are drawn like those that were
    seen, on a log scale; the fewer were seen, the wider. Without `at_once` all are one group."""
    together = min(max(1, at_once or replicas), replicas)
    logs = [math.log(total) for total in totals if total > 0]
    if len(logs) < ENOUGH:
        return Forecast(kind, replicas, len(logs), at_once=together)
    drawn = sorted(_roll_outs(logs, replicas, together))
    low, middle, high = (drawn[int(part * DRAWS)] for part in (LOW, MIDDLE, HIGH))
    return Forecast(kind, replicas, len(logs), middle, low, high, together)


def _roll_outs(logs: Sequence[float], replicas: int, together: int) -> Iterator[float]:
    """The seconds of a roll-out, drawn often. All replicas of one share what is not known of the
    mean and of the spread, so that few starts that were seen do not make each replica's time
    another guess; the draws are the same for the same starts."""
    groups = math.ceil(replicas / together)
    drawn = min(groups, MOST_GROUPS)
    mean, spread, freedom = fmean(logs), max(stdev(logs), LEAST_SPREAD), len(logs) - 1
    chance = random.Random(0)
    for _ in range(DRAWS):
        own = spread * math.sqrt(freedom / chance.gammavariate(freedom / 2, 2.0))
        centre = chance.gauss(mean, own / math.sqrt(len(logs)))
        # The slowest is below a time when all are.
        tails = [
            min(max((1.0 - chance.random()) ** (1 / together), 1e-12), 1.0 - 1e-12)
            for _ in range(drawn)
        ]
        yield groups / drawn * sum(math.exp(centre + own * NORMAL.inv_cdf(tail)) for tail in tails)


def forecast_rollouts(
    cold: Sequence[float],
    warm: Sequence[float],
    replicas: int,
    at_once: int | None = None,
    untold: Sequence[float] = (),
) -> list[Forecast]:
    """One for starts that the caches served and one for those they did not, where both were seen;
    else one for all, those too that tell of no cache."""
    if cold and warm:
        return [
            forecast_rollout("with warm caches", warm, replicas, at_once),
            forecast_rollout("with cold caches", cold, replicas, at_once),
        ]
    every = [*cold, *warm, *untold]
    return [forecast_rollout("as its starts so far", every, replicas, at_once)] if every else []


@dataclass(frozen=True)
class WarmCacheEstimate:
    """What a cache that holds everything, such as a file of `compilewatch cache save`, takes off a
    cold start: `saved` where starts of both kinds were seen, else at most `missed`, what the
    compilations of a start took that were in no cache."""

    cold: int
    warm: int
    saved: float | None = None
    missed: float | None = None

    @property
    def text(self) -> str:
        """What it says; empty where no start was cold."""
        seen = (
            f"{numbers.plural(self.cold, 'cold start')} and {numbers.plural(self.warm, 'warm one')}"
        )
        if self.saved is not None and self.saved <= 0:
            return f"A warm cache saved nothing so far: {seen} took alike, or the warm longer."
        if self.saved is not None:
            return (
                f"A warm cache saves about {numbers.duration(self.saved)} of a cold start: the "
                f"medians of {seen}."
            )
        if self.missed is not None:
            return (
                f"A warm cache would save {numbers.duration(self.missed)} of a start at most, "
                "what it compiled anew: none was warm yet."
            )
        return ""


def estimate_warm_cache(
    cold: Sequence[float], warm: Sequence[float], *, missed: float, starts: int
) -> WarmCacheEstimate:
    """`missed` seconds were compiled anew by so many starts."""
    if cold and warm:
        return WarmCacheEstimate(len(cold), len(warm), median(cold) - median(warm))
    return WarmCacheEstimate(
        len(cold), len(warm), missed=missed / starts if cold and starts and missed > 0 else None
    )
