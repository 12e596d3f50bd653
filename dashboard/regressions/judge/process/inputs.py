"""Process inputs of the judge: one minute of process values that belong to no region, and the cost
of the process's start."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.regressions.judge.inputs import Arm, Stratum

START_MINUTES = 20
"""Minutes after an instance's first one at which its start is known. Later compilations are not
part of the start."""


@dataclass(frozen=True, slots=True)
class InstanceStart:
    """Cost of the first minutes of one process, in seconds; absent values are None, never 0.

    `cold_start_minute` is the minute from which the cold start is known. Hits and misses are
    compilations with and without a cached result; `hit_seconds` and `miss_seconds` are their
    durations.
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
    """One minute of one process. Sizes are in bytes, minutes count since the epoch, and absent
    values are None, never 0.

    - `instance`, `unit`, `arm` and `first_minute` equal those of its `InstanceMinute`s.
    - The stratum contains no mode, because a process holds regions of several modes.
    - `start` is present from `START_MINUTES` on.
    - `life` is the unit that starts and grows once: the job or the process. None if it equals
      `unit`, which outlives a restart on its host.
    - `recompiles` is None if the agents' versions count them differently.
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
        """Minutes since the first one."""
        return self.minute - self.first_minute
