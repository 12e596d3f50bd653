"""Process metrics as a table. Metrics that alone do not harm users are soft."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute

Prior = tuple[tuple[int, float], ...]
"""Variance between healthy instances after the given minutes, in ascending order."""


@dataclass(frozen=True, kw_only=True)
class LevelMetric(Metric):
    """A level that every instance reports in every minute; compared as a log ratio within the same
    minute."""

    value: Callable[[InstanceProcessMinute], float | None]
    smallest_effect: float
    tolerated: float
    prior_variance: Prior
    confirmed_by: LevelMetric | None = None
    """A metric that must also be up before this one asks for ROLL BACK. It is in no table."""


@dataclass(frozen=True, kw_only=True)
class GrowthMetric(Metric):
    """Growth of a level: the median slope of its log per hour, for each instance alone.

    The slope is computed over the lowest levels of blocks, from the age of `from_minute` on and
    once `least_minutes` of data exist. A block is one observation; the newest `most_blocks` count.
    A rise is confirmed by at least `confirm_minutes` after the first `least_minutes`; those minutes
    alone must grow, too.
    """

    value: Callable[[InstanceProcessMinute], float | None]
    smallest_effect: float
    prior_variance: Prior
    from_minute: int = 90
    least_minutes: int = 120
    confirm_minutes: int = 60
    block_minutes: int = 15
    most_blocks: int = 64


@dataclass(frozen=True, kw_only=True)
class SingleValueMetric(Metric):
    """One number per instance, known some time after its start; compared as a log ratio between
    instances."""

    value: Callable[[InstanceProcessMinute], float | None]
    smallest_effect: float
    prior_variance: Prior
    hard: bool = False


@dataclass(frozen=True, kw_only=True)
class StormMetric(Metric):
    """Events that are rare in a settled process. An instance is affected above `threshold` per hour
    with at least `least` events.

    The last `window_minutes` count, from the age of `from_minute` on. If the baseline is affected,
    too, a rise matters from `times` the rate and `points` per hour.
    """

    events: Callable[[InstanceProcessMinute], int | None]
    threshold: float
    least: int
    times: float
    points: float
    from_minute: int = 20
    window_minutes: int = 15
    least_minutes: int = 10
    hard: bool = False


@dataclass(frozen=True, kw_only=True)
class MissShareMetric(Metric):
    """The share of compile seconds at the start that no cache served, and whether misses exceed
    chance.

    `least` is the minimum number of misses. `dispersion` is the coefficient of variation of the
    rate between healthy instances.
    """

    times: float
    points: float
    least: int
    dispersion: float
    hard: bool = False


ProcessMetric = LevelMetric | GrowthMetric | SingleValueMetric | StormMetric | MissShareMetric


def compile_time(row: InstanceProcessMinute) -> float | None:
    """Seconds of first compilations, once known."""
    return row.start.compile_time if row.start is not None else None


def cold_start(row: InstanceProcessMinute) -> float | None:
    """Seconds until the process was ready, once known."""
    start = row.start
    return start.cold_start if start is not None and row.minute >= start.cold_start_minute else None


GPU_HELD = LevelMetric(
    name="gpu_held",
    unit="bytes",
    value=attrgetter("gpu_allocated"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=((0, 0.015**2),),
)
# The peak is a maximum since the start of the process, so the temporary memory of a compilation
# counts as long as the process lives. Memory in use is sampled during a call or between calls: a
# busier version appears to use more. Both together show that the version needs more memory.
GPU_MEMORY = LevelMetric(
    name="gpu_memory",
    unit="bytes",
    value=attrgetter("gpu_peak"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=((0, 0.015**2),),
    confirmed_by=GPU_HELD,
)
HOST_MEMORY = LevelMetric(
    name="host_memory",
    unit="bytes",
    hard=False,
    weight=0.5,
    value=attrgetter("host_rss"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=((0, 0.05**2),),
)
LEAK = GrowthMetric(
    name="leak",
    unit="share per hour",
    value=attrgetter("gpu_allocated"),
    smallest_effect=0.005,
    prior_variance=((120, 0.005**2), (240, 0.0022**2), (480, 0.001**2), (960, 0.0005**2)),
)
COMPILE_TIME = SingleValueMetric(
    name="compile_time",
    unit="s",
    weight=1.0,
    value=compile_time,
    smallest_effect=0.25,
    prior_variance=((0, 0.18**2),),
)
COLD_START = SingleValueMetric(
    name="cold_start",
    unit="s",
    weight=0.5,
    value=cold_start,
    smallest_effect=0.25,
    prior_variance=((0, 0.20**2),),
)
RECOMPILES = StormMetric(
    name="recompiles",
    unit="per hour",
    weight=0.0,
    events=attrgetter("recompiles"),
    threshold=10.0,
    least=5,
    times=3.0,
    points=2.0,
)
CACHE = MissShareMetric(
    name="cache", unit="share", weight=1.5, times=2.0, points=0.10, least=5, dispersion=0.5
)

PROCESS_METRICS: tuple[ProcessMetric, ...] = (
    GPU_MEMORY,
    HOST_MEMORY,
    LEAK,
    COMPILE_TIME,
    COLD_START,
    RECOMPILES,
    CACHE,
)
