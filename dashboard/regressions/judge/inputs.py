"""Inputs of the judge: one minute of one instance in one region and shape bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Arm = Literal["baseline", "candidate"]
Layout = Literal[
    "side_by_side",
    "day_before",
    "day_before_by_weekday",
    "past_by_load",
    "pool_day_before",
    "pool_day_before_by_weekday",
    "pool_by_load",
    "last_day",
    "run_against_run",
    "less_neighbours",
]
"""Layouts: the same minutes; the same hosts one day earlier, also adjusted for what this weekday
changed a week earlier; their past adjusted for load; the same three with all hosts of the baseline
together, for instances on other hosts; the baseline's last day as a whole; runs of short jobs
against runs of earlier versions; last in addition, less what other models on the nodes show."""
Stratum = str | tuple[str, ...]
CellKey = tuple[Stratum, str]
"""Stratum and shape bucket. Only calls of the same cell are compared with each other."""


@dataclass(frozen=True, slots=True)
class InstanceMinute:
    """Calls of one instance in a minute. Durations are in seconds, minutes count since the epoch,
    and absent values are None, never 0.

    - `first_minute` is the first minute of the instance's life.
    - `unit` is the independent unit: the job if the world size is above 1 (its ranks move in
      lockstep), else the instance.
    - `eager` is the sum of `eager_by`. Calls that are neither compiled, partial nor eager are
      unknown: an agent samples only some calls, and shares are of the sampled calls.
    - `gpu_count` is the number of calls with sampled GPU time.
    - `host` is where the instance runs (one host for all of a job with several ranks); empty if not
      reported.
    - `items` is the number of processed items, if the job reports it; `latency_sum` is the total
      duration of calls.
    - `stalled` calls waited for a compilation after warm-up, for `stalled_sum` seconds together.
      They are in no other number except `calls`; None if the agents do not report them.
    - `call_seconds` is the total duration of steady and stalled calls, including untimed ones.
      `caller_p50` and `caller_p99` are of steady and stalled calls together.
    - `bounds` are those of the buckets in which an engine counts durations: empty if unknown, None
      if an agent measures durations.
    """

    instance: str | int
    unit: str | int
    arm: Arm
    stratum: Stratum
    region: str
    bucket: str
    minute: int
    first_minute: int
    calls: int
    errors: int = 0
    compiled: int = 0
    partial: int = 0
    eager: int = 0
    eager_by: Mapping[str, int] = field(default_factory=dict)
    p50: float | None = None
    p99: float | None = None
    gpu_p50: float | None = None
    gpu_p99: float | None = None
    gpu_count: int = 0
    outermost: bool = True
    host: str = ""
    items: float | None = None
    latency_sum: float = 0.0
    stalled: int | None = None
    stalled_sum: float | None = None
    call_seconds: float | None = None
    caller_p50: float | None = None
    caller_p99: float | None = None
    bounds: tuple[float, ...] | None = None


@dataclass(slots=True)
class CellRows:
    """The rows of one minute in one cell, by arm, and the cell's traffic so far."""

    traffic: Traffic
    baseline: list[InstanceMinute] = field(default_factory=list)
    candidate: list[InstanceMinute] = field(default_factory=list)
    young: list[InstanceMinute] = field(default_factory=list)
    """Rows of candidate instances in their warm-up. Only metrics `from_start` read them."""
    gone: bool = False
    """True if the baseline has ended in this stratum: the candidate is compared with the past of
    its hosts."""
    alternates: bool = False
    """True if the baseline returned after it had ended: it is then not compared as a pool."""
    loads: Mapping[tuple[Arm, str], float] = field(default_factory=dict)
    """The log of calls per minute and instance, by arm and host; empty if no past is kept."""


@dataclass(slots=True)
class Traffic:
    """Steady calls of one cell of a comparison, and the candidate's calls without a counterpart."""

    baseline: int = 0
    candidate: int = 0
    alone: int = 0
    after: int = 0
    away: int = 0
    """The candidate's calls after the baseline's end on hosts without a past to compare with."""
    baseline_seen: int | None = None
    """Last minute with calls of the baseline in this cell."""


def stratum_name(stratum: Stratum) -> str:
    """Display name of a stratum."""
    return stratum if isinstance(stratum, str) else " · ".join(part for part in stratum if part)
