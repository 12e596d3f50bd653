"""What the judge is fed of a process: one minute of what belongs to no region, and what its start
took."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.regressions.judge.inputs import Arm, Stratum

START_MINUTES = 20
"""How an instance started is known so many minutes after its first one; what is compiled later is
no start."""


@dataclass(frozen=True, slots=True)
class InstanceStart:
    """What the first minutes of one process took, in seconds; absent is None and never 0.

    `cold_start_minute` is the minute from which the cold start is known. Hits and misses are
    compilations that a cache answered, `hit_seconds` and `miss_seconds` how long those took.
    """

    compile_time: float | None = None
    cold_start: float | None = None
    cold_start_minute: int = 0
    hits: int = 0
    misses: int = 0
    hit_seconds: float = 0.0
    miss_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class InstanceProcessMinute:
    """One minute of one process; bytes, minutes since the epoch, absent is None and never 0.

    `instance`, `unit`, `arm` and `first_minute` are those of its `InstanceMinute`s. The stratum
    knows no mode: a process holds regions of several. `start` is there from `START_MINUTES` on.
    `life` is what starts and grows once, the job or the process; None where that is the unit, which
    outlives a restart on its host. `recompiles` is None where the versions of the agents count them
    in different ways.
    """

    instance: str | int
    unit: str | int
    arm: Arm
    stratum: Stratum
    minute: int
    first_minute: int
    gpu_peak: int | None = None
    host_rss: int | None = None
    recompiles: int | None = 0
    ooms: int = 0
    start: InstanceStart | None = None
    life: str | int | None = None
    gpu_allocated: int | None = None

    @property
    def age(self) -> int:
        """Minutes since its first one."""
        return self.minute - self.first_minute
