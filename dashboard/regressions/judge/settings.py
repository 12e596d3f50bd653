"""Settings: the judged metrics as a table, and the calibrated constants of the procedure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from dashboard.regressions.judge import call_metrics
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.process.metrics import PROCESS_METRICS, ProcessMetric

WarmUpSource = Literal["default", "learned", "set"]


@dataclass(frozen=True, kw_only=True)
class RatioMetric(Metric):
    """A level that is compared as a log ratio between instances.

    `prior_variance` is the variance between healthy instances after the given matched minutes, in
    ascending order, and `prior_df` its degrees of freedom. `past_share` is the part of it that
    remains if the level of the node before the deployment is known, and `own_share` the part that
    remains between two times of one process. `instead_of` names the metric that this one replaces
    if the region is asynchronous on the GPU. A metric `of_call_time` is not valid there.
    """

    value: Callable[[InstanceMinute], float | None]
    samples: Callable[[InstanceMinute], int]
    smallest_effect: float
    tolerated: float
    prior_variance: tuple[tuple[int, float], ...]
    prior_df: int = 20
    past_share: float = 0.45
    own_share: float = 0.35
    worse: int = 1
    instead_of: str | None = None
    day_variance: float = 0.025**2
    """Variance between days that all hosts share. It applies if a version is compared with the day
    before."""
    of_call_time: bool = False
    of_callers: bool = False
    """The metric includes stalled calls. One compilation moves a mean for hours, so most of the
    last half hour must show the change."""
    controlled: bool = False
    """The value is less what other models on the same node show (`neighbours`)."""
    of_buckets: bool = False
    """An engine may count calls in buckets. The level then lies in one bucket, and its resolution
    is the bucket's width."""


@dataclass(frozen=True, kw_only=True)
class AffectedMetric(Metric):
    """A count that is mostly zero. An instance is affected if more than `threshold` of at least
    `least` calls show it.

    - `calls` are the calls with a known result; `affected_events` of them are required.
    - With a `tail`, the binomial bound of `instance_windows` must also exceed the threshold.
    - As a rate, a change matters from `times` the baseline's rate, `points` more, and
      `least_events` on.
    - `by_rate` enables the rate even if no instance of the baseline is affected.
    - `tolerated` is the rise that HEALTHY must rule out, if it is `tolerated_points` or more.
    - `from_start` includes the candidate's warm-up: a failed call is no effect of warm-up.
    """

    events: Callable[[InstanceMinute], int]
    calls: Callable[[InstanceMinute], int]
    causes: Callable[[InstanceMinute], Mapping[str, int]]
    threshold: float
    times: float
    points: float
    least: int = 20
    window_minutes: int = 15
    affected_events: int = 1
    tail: float | None = None
    by_rate: bool = False
    least_events: int = 5
    dispersion: float = 0.5
    tolerated: float | None = None
    tolerated_points: float = 0.005
    from_start: bool = False


AnyMetric = RatioMetric | AffectedMetric

LEVEL_VARIANCE = ((10, 0.055**2), (60, 0.05**2), (240, 0.042**2), (1400, 0.04**2))
"""Variance between healthy instances of one fleet that has learned nothing yet. Differences between
hosts and processes remain; the rest averages out in hours."""
TAIL_VARIANCE = ((20, 0.075**2), (60, 0.065**2), (240, 0.05**2))

P50 = RatioMetric(
    name="p50",
    unit="s",
    leads=True,
    follows=("stalled", "eager"),
    value=call_metrics.wall_middle,
    samples=attrgetter("calls"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=LEVEL_VARIANCE,
    weight=5.0,
    of_callers=True,
    of_buckets=True,
)
GPU_P50 = RatioMetric(
    name="gpu_p50",
    unit="s",
    leads=True,
    only_with="gpu",
    follows=("eager",),
    value=attrgetter("gpu_p50"),
    samples=attrgetter("gpu_count"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=LEVEL_VARIANCE,
    weight=5.0,
    instead_of="p50",
)
P99 = RatioMetric(
    name="p99",
    unit="s",
    value=call_metrics.wall_tail,
    samples=call_metrics.wall_tail_calls,
    smallest_effect=0.10,
    tolerated=0.20,
    prior_variance=TAIL_VARIANCE,
    weight=2.0,
    follows=("stalled", "p50", "eager"),
    of_callers=True,
    of_buckets=True,
)
GPU_P99 = RatioMetric(
    name="gpu_p99",
    unit="s",
    value=call_metrics.gpu_tail,
    samples=call_metrics.gpu_tail_calls,
    smallest_effect=0.10,
    tolerated=0.20,
    prior_variance=TAIL_VARIANCE,
    weight=2.0,
    instead_of="p99",
    only_with="gpu",
    follows=("gpu_p50", "eager"),
)
THROUGHPUT = RatioMetric(
    name="throughput",
    unit="items/s",
    value=call_metrics.items_per_second,
    samples=attrgetter("calls"),
    smallest_effect=0.05,
    tolerated=0.10,
    prior_variance=((20, 0.058**2), (60, 0.05**2), (240, 0.045**2)),
    worse=-1,
    of_call_time=True,
    only_with="items",
    follows=("stalled", "p50", "eager"),
)
EAGER = AffectedMetric(
    name="eager",
    unit="share",
    events=attrgetter("eager"),
    calls=call_metrics.known_calls,
    causes=attrgetter("eager_by"),
    threshold=0.02,
    affected_events=5,
    tail=0.001,
    times=2.0,
    points=0.01,
    weight=0.5,
)
ERRORS = AffectedMetric(
    name="errors",
    unit="share",
    events=attrgetter("errors"),
    calls=attrgetter("calls"),
    causes=call_metrics.no_causes,
    threshold=0.01,
    affected_events=30,
    times=2.0,
    points=0.002,
    tolerated=2.0,
    by_rate=True,
    from_start=True,
    weight=2.0,
    hold_minutes=30,
    watch_minutes=20,
)

STALLED = AffectedMetric(
    name="stalled",
    unit="share",
    events=call_metrics.stalled_calls,
    calls=call_metrics.stall_known_calls,
    causes=call_metrics.no_causes,
    threshold=0.02,
    affected_events=5,
    times=2.0,
    points=0.01,
    only_with="stalled",
    hold_minutes=30,
    watch_minutes=20,
)
# One compilation takes as long as thousands of calls. On an instance with little traffic, a few
# compilations are most of the time.
STALLED_TIME = AffectedMetric(
    name="stalled_time",
    unit="share",
    hard=False,
    events=call_metrics.stalled_ms,
    calls=call_metrics.stall_known_ms,
    causes=call_metrics.no_causes,
    threshold=0.05,
    affected_events=1000,
    least_events=1000,
    times=2.0,
    points=0.02,
    only_with="stalled",
    follows=("stalled",),
    hold_minutes=30,
    watch_minutes=20,
)

METRICS: tuple[AnyMetric, ...] = (
    P50,
    GPU_P50,
    P99,
    GPU_P99,
    THROUGHPUT,
    ERRORS,
    EAGER,
    STALLED,
    STALLED_TIME,
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Constants of the procedure; the defaults are those in production."""

    metrics: tuple[AnyMetric, ...] = METRICS
    process_metrics: tuple[ProcessMetric, ...] = PROCESS_METRICS
    roll_back_alpha: float = 0.005
    """False ROLL BACK per deployment: one in 200."""
    watch_alpha: float = 0.025
    """False WATCH per deployment: one in 40."""
    healthy_alpha: float = 0.05
    prior_df: int = 15
    warm_up_minutes: int = 5
    """First minutes of every process that are not compared, the same for both versions."""
    warm_up_source: WarmUpSource = "default"
    warm_up_processes: int = field(default=0, compare=False)
    """Past processes that a learned warm-up is based on. More of them alone change no result."""
    bin_minutes: tuple[int, ...] = (1, 5, 15, 60)
    bin_calls: int = 20
    gpu_samples: int = 20
    instance_minutes: int = 5
    """Matched minutes from which an instance counts."""
    matched_minutes: int = 20
    watch_minutes: int = 5
    narrow_minutes: int = 30
    """The same while one instance accounts for nearly all of the change: a busy neighbour may stay
    nearly that long."""
    recent_minutes: int = 30
    comparable_share: float = 0.5
    looks: tuple[int, ...] = (60, 180, 360, 720, 1440)
    trailing_minutes: tuple[int, ...] = (60, 240)
    """Lengths of the windows that end now, in addition to the time since the deployment."""
    silent_minutes: int = 30
    quiet_minutes: int = 90
    """Minutes without the candidate's calls in a region, while it calls others, after which the
    region's findings end."""
    stale_minutes: int = 120
    """Minutes with calls and no comparison after which HEALTHY no longer holds."""
    low_adoption: float = 0.10
    """A version with a smaller share of the calls is marked as low traffic."""
    gone_minutes: int = 10
    """Minutes without a call of the baseline in a stratum after which it counts as ended there."""
    past_minutes: int = 180
    """Minimum minutes that the baseline ran on a host whose past is compared."""
    past_slope: float = 0.7
    """Expected part of a node's earlier difference that remains in the next process on it."""
    gross_change: float = 0.8
    """A change that no noise causes: calls that take 1.8 times as long are judged without hold
    times, on a single instance as well."""
    outlier_change: float = 0.35
    """A single instance among several is named from this change on."""
    lone_minutes: int = 40
    """Matched minutes before a single instance asks for ROLL BACK: a busy neighbour may stay for
    half an hour."""
    others_share: float = 1 / 2
    """The minimum part of a change that must remain without the most affected instance. Below it
    there is no reason for a rollback."""
    minor_region_share: float = 0.10
    """A region with a smaller part of the calls of the candidate's busiest region does not hold
    back HEALTHY."""

    def budget(self, regions: int = 1) -> ErrorBudget:
        """The error budget of a comparison with this number of outermost regions."""
        levels = [m for m in self.metrics if not (isinstance(m, RatioMetric) and m.instead_of)]
        metrics = (*levels, *self.process_metrics)
        return ErrorBudget(self.roll_back_alpha, self.watch_alpha, metrics, regions)


PRODUCTION = Settings()
