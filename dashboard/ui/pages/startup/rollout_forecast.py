"""Rollout forecast: estimated time until all replicas are warm, from observed starts."""

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
"""Maximum number of simulated groups of a rollout; above it, each simulated group represents
several."""


@dataclass(frozen=True)
class Forecast:
    """Seconds until the last of `replicas` is warm, with an 80% interval from `low` to `high`.
    Replicas start in groups of `at_once`, each after the previous group is warm. `starts` is the
    number of observed starts of one kind."""

    kind: str
    replicas: int
    starts: int
    middle: float | None = None
    low: float | None = None
    high: float | None = None
    at_once: int = 0

    @property
    def text(self) -> str:
        """The forecast as text."""
        if self.middle is None or self.low is None or self.high is None:
            return f"not enough data ({self.starts} of {ENOUGH} starts)"
        return (
            f"{numbers.duration(self.middle)} (80% interval {numbers.duration(self.low)} to "
            f"{numbers.duration(self.high)})"
        )


def forecast_rollout(
    kind: str, totals: Sequence[float], replicas: int, at_once: int | None = None
) -> Forecast:
    """Each group takes as long as its slowest start. Starts are drawn from a log-normal fit of the
    observed starts; fewer observations widen the interval. Without `at_once`, all replicas form one
    group."""
    together = min(max(1, at_once or replicas), replicas)
    logs = [math.log(total) for total in totals if total > 0]
    if len(logs) < ENOUGH:
        return Forecast(kind, replicas, len(logs), at_once=together)
    drawn = sorted(_roll_outs(logs, replicas, together))
    low, middle, high = (drawn[int(part * DRAWS)] for part in (LOW, MIDDLE, HIGH))
    return Forecast(kind, replicas, len(logs), middle, low, high, together)


def _roll_outs(logs: Sequence[float], replicas: int, together: int) -> Iterator[float]:
    """Simulated durations of a rollout. All replicas of one simulation share one draw of mean and
    spread, because the uncertainty of the fit is common to them. The draws are deterministic."""
    groups = math.ceil(replicas / together)
    drawn = min(groups, MOST_GROUPS)
    mean, spread, freedom = fmean(logs), max(stdev(logs), LEAST_SPREAD), len(logs) - 1
    chance = random.Random(0)
    for _ in range(DRAWS):
        own = spread * math.sqrt(freedom / chance.gammavariate(freedom / 2, 2.0))
        centre = chance.gauss(mean, own / math.sqrt(len(logs)))
        # The slowest start is below a time exactly if all starts are.
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
    """Forecasts for warm and for cold caches if starts of both kinds were observed; else one
    forecast of all starts, including starts with unknown cache state."""
    if cold and warm:
        return [
            forecast_rollout("with warm caches", warm, replicas, at_once),
            forecast_rollout("with cold caches", cold, replicas, at_once),
        ]
    every = [*cold, *warm, *untold]
    return [forecast_rollout("from all starts so far", every, replicas, at_once)] if every else []


@dataclass(frozen=True)
class WarmCacheEstimate:
    """Time that a complete cache, such as a file of `compilewatch cache save`, saves on a cold
    start: `saved` if starts of both kinds were observed, else at most `missed`, the seconds of a
    start's uncached compilations."""

    cold: int
    warm: int
    saved: float | None = None
    missed: float | None = None

    @property
    def text(self) -> str:
        """The estimate as text; empty if no start was cold."""
        seen = (
            f"{numbers.plural(self.cold, 'cold start')} and {numbers.plural(self.warm, 'warm one')}"
        )
        if self.saved is not None and self.saved <= 0:
            return f"A warm cache has saved no time so far ({seen})."
        if self.saved is not None:
            return (
                f"A warm cache saves about {numbers.duration(self.saved)} of a cold start "
                f"(medians of {seen})."
            )
        if self.missed is not None:
            return (
                f"A warm cache would save at most {numbers.duration(self.missed)} of a start, "
                "the time of uncached compilations. No warm start was observed yet."
            )
        return ""


def estimate_warm_cache(
    cold: Sequence[float], warm: Sequence[float], *, missed: float, starts: int
) -> WarmCacheEstimate:
    """`missed` is the total compile time in seconds of cache misses over `starts` starts."""
    if cold and warm:
        return WarmCacheEstimate(len(cold), len(warm), median(cold) - median(warm))
    return WarmCacheEstimate(
        len(cold), len(warm), missed=missed / starts if cold and starts and missed > 0 else None
    )
