"""What the judge is fed: one minute of one instance in one region and shape bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Arm = Literal["baseline", "candidate"]
Layout = Literal["side_by_side", "day_before", "past_by_load", "last_day"]
"""In the same minutes; on the same hosts, a day before, or their past adjusted for load; with the
baseline's last day as a whole."""
Stratum = str | tuple[str, ...]
CellKey = tuple[Stratum, str]
"""Stratum and shape bucket: only calls of the same cell are compared with each other."""


@dataclass(frozen=True, slots=True)
class InstanceMinute:
    """Calls of one instance in a minute; durations in seconds, minutes since the epoch, absent is
    None and never 0.

    `first_minute` is the first minute of the instance's life, `unit` what varies independently: the
    job when the world size is above 1 (its ranks move in lockstep), else the instance. `eager` sums
    `eager_by`; calls that are neither compiled, partial nor eager are unknown: an agent looks at a
    part of the calls only, and shares are of those it knows. `gpu_count` is how many calls the GPU
    time was sampled on. `host` is where it runs (one host for all of a job with several ranks),
    empty where nobody says. `items` is what the calls worked on, where the job says so, and
    `latency_sum` how long they took together. `stalled` calls waited for a compilation after
    warm-up, `stalled_sum` seconds together, and are in no other number but `calls`; None where the
    agents do not tell. `call_seconds` is how long steady and stalled calls took together, untimed
    ones included; `caller_p50` and `caller_p99` are of steady and stalled calls together. `bounds`
    are those of the buckets in which an engine counts how long its calls take: empty where they are
    not known, None where an agent measures them.
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
    """The rows of one minute in one cell, by arm, and what the cell has seen so far."""

    traffic: Traffic
    baseline: list[InstanceMinute] = field(default_factory=list)
    candidate: list[InstanceMinute] = field(default_factory=list)
    gone: bool = False
    """The baseline has ended in this stratum: the candidate is compared with the past of its
    hosts."""
    loads: Mapping[tuple[Arm, str], float] = field(default_factory=dict)
    """The log of calls per minute and instance by arm and host; empty where no past is kept."""


@dataclass(slots=True)
class Traffic:
    """Steady calls of one cell of a comparison, and how many of the candidate's had nothing to
    stand beside."""

    baseline: int = 0
    candidate: int = 0
    alone: int = 0
    after: int = 0
    away: int = 0
    """The candidate's calls, once the baseline had ended, on hosts without a past to compare them
    with."""
    baseline_seen: int | None = None
    """Last minute with calls of the baseline in this cell."""


def stratum_name(stratum: Stratum) -> str:
    """A stratum as people read it."""
    return stratum if isinstance(stratum, str) else " · ".join(part for part in stratum if part)
