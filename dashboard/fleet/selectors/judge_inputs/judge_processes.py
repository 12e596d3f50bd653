"""Judge processes: process minutes of a candidate and its baseline, and the cost of their
starts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import NamedTuple

from django.db.models import Q

from dashboard.fleet.models import ColdStart, CompileEvent, Deployment, ProcessMinute
from dashboard.fleet.selectors.compilations.cache_outcomes import COMPILATION
from dashboard.fleet.selectors.judge_inputs.independent_units import JudgedProcess, read_processes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import Arm
from dashboard.projects.selectors import for_project

START_MINUTES = 20
"""Minutes of a process that count as its start; its start is read once these are over."""

COLD_START_WITHIN_MINUTES = 120
"""Minutes after which a process that is not ready has no comparable cold start."""

_COLUMNS = ("instance_id", "minute", "gpu_peak", "gpu_allocated", "host_rss", "recompiles", "ooms")
_CACHE_COLUMNS = ("cache_hits", "cache_misses", "hit_seconds", "miss_seconds")


class JudgedStart(NamedTuple):
    """Cost of a process's first minutes in seconds, and the cache answers of its compilations."""

    compile_time: float | None
    cold_start: float | None
    cold_start_minute: int
    hits: int
    misses: int
    hit_seconds: float
    miss_seconds: float


class JudgedProcessMinute(NamedTuple):
    """One minute of one process; bytes, minutes since 1970, absent values None.

    The stratum describes the machine: GPU type and world size.
    """

    instance: str
    unit: str
    arm: Arm
    stratum: tuple[str, ...]
    minute: int
    first_minute: int
    gpu_peak: int | None
    host_rss: int | None
    recompiles: int | None
    """None if the agents of the two versions count recompiles differently."""
    ooms: int
    start: JudgedStart | None
    life: str | None
    """Job or process, if its unit covers more than that one."""
    gpu_allocated: int | None

    @property
    def age(self) -> int:
        """Minutes since the first minute of the process."""
        return self.minute - self.first_minute


Starts = MutableMapping[int, JudgedStart]
"""Starts by Instance.id. The caller retains the mapping, so each start is read once."""


def read_process_minutes(
    *,
    deployment: Deployment,
    baseline: Deployment | None,
    from_minute: int,
    to_minute: int,
    starts: Starts,
    units: Collection[str] | None = None,
) -> list[JudgedProcessMinute]:
    """Return the process minutes of both deployments, ordered by minute and instance.

    Minutes range from `from_minute` to `to_minute`, exclusive. With `units`, only their processes
    are read.
    """
    found: list[JudgedProcessMinute] = []
    sides: list[tuple[Arm, Deployment | None]] = [("candidate", deployment), ("baseline", baseline)]
    for arm, side in sides:
        if side is not None:
            found.extend(
                _arm_states(
                    arm,
                    side,
                    max(from_minute, side.started_minute),
                    min(to_minute, side.last_minute + 1),
                    starts,
                    units,
                )
            )
    found.sort(key=lambda row: (row.minute, row.instance))
    return found


def _arm_states(
    arm: Arm,
    side: Deployment,
    start: int,
    end: int,
    starts: Starts,
    units: Collection[str] | None,
) -> Iterable[JudgedProcessMinute]:
    if start >= end:
        return
    processes = _processes(side, start, end, units)
    rows = for_project(ProcessMinute, side.project_id).filter(
        day__gte=start // 1440,
        day__lte=(end - 1) // 1440,
        instance_id__in=list(processes),
        minute__gte=start,
        minute__lt=end,
    )
    values = list(rows.values_list(*_COLUMNS))
    unread = _find_unread_starts(processes, [row[:2] for row in values], starts)
    starts.update(read_instance_starts(project_id=side.project_id, first=unread))
    for id, minute, gpu_peak, gpu_allocated, host_rss, recompiles, ooms in values:
        process = processes[id]
        if minute < process.first_minute:
            continue
        known = starts.get(id) if minute - process.first_minute >= START_MINUTES else None
        yield JudgedProcessMinute(
            process.instance,
            process.unit,
            arm,
            _machine(process),
            minute,
            process.first_minute,
            gpu_peak,
            host_rss,
            recompiles,
            ooms,
            known,
            _own_start(process),
            gpu_allocated,
        )


def _find_unread_starts(
    processes: Mapping[int, JudgedProcess], minutes: Iterable[tuple[int, int]], starts: Starts
) -> dict[int, int]:
    """Return the first minute of each process whose start must be read.

    `minutes` are pairs of Instance.id and minute.
    """
    newest = {
        id: minute - processes[id].first_minute
        for id, minute in sorted(minutes, key=lambda row: row[1])
    }
    return {
        id: processes[id].first_minute
        for id, age in newest.items()
        if age >= START_MINUTES and _is_start_due(starts.get(id), age)
    }


def _is_start_due(known: JudgedStart | None, age: int) -> bool:
    """Return whether the start must be read.

    A cold start may take longer than the compilations, up to COLD_START_WITHIN_MINUTES.
    """
    return known is None or (known.cold_start is None and age < COLD_START_WITHIN_MINUTES)


def _processes(
    side: Deployment, start: int, end: int, units: Collection[str] | None
) -> dict[int, JudgedProcess]:
    """Return the processes of a version that may have reported in the span."""
    return {
        id: process
        for id, process in read_processes(side).items()
        if process.last_minute >= start
        and process.first_minute < end
        and (units is None or process.unit in units)
    }


def _machine(process: JudgedProcess) -> tuple[str, ...]:
    return (
        process.gpu or "CPU",
        f"world size {process.world_size}" if process.world_size > 1 else "",
    )


def _own_start(process: JudgedProcess) -> str | None:
    """Return the process if its start is its own rather than its unit's.

    Ranks start together. A single process that joined the unit of an ended process has its own
    start.
    """
    return (
        process.instance if process.world_size <= 1 and process.instance != process.unit else None
    )


def read_instance_starts(*, project_id: int, first: Mapping[int, int]) -> dict[int, JudgedStart]:
    """Return the starts by Instance.id; three queries.

    `first` holds the first minute of each process.
    """
    if not first:
        return {}
    days = Q(
        day__gte=min(first.values()) // 1440, day__lte=(max(first.values()) + START_MINUTES) // 1440
    )
    compiled: dict[int, list[float]] = {}
    events = (
        for_project(CompileEvent, project_id)
        .filter(days, COMPILATION, instance_id__in=list(first))
        .exclude(kind="recompile")
    )
    for id, at, total in events.exclude(total=None).values_list("instance_id", "at", "total"):
        if total and at.timestamp() < (first[id] + START_MINUTES) * 60:
            compiled.setdefault(id, []).append(total)
    asked: dict[int, list[tuple[int, int, float, float]]] = {}
    rows = for_project(ProcessMinute, project_id).filter(
        days,
        Q(cache_hits__gt=0) | Q(cache_misses__gt=0),
        instance_id__in=list(first),
        minute__gte=min(first.values()),
        minute__lt=max(first.values()) + START_MINUTES,
    )
    for id, minute, hits, misses, hit_s, miss_s in rows.values_list(
        "instance_id", "minute", *_CACHE_COLUMNS
    ):
        if minute < first[id] + START_MINUTES:
            asked.setdefault(id, []).append((hits, misses, hit_s, miss_s))
    cold: dict[int, tuple[float, int]] = {}
    ready = ColdStart.objects.filter(instance_id__in=list(first), total__gt=0)
    for id, started, total in ready.values_list("instance_id", "started_at", "total"):
        if total:
            cold[id] = total, int((started.timestamp() + total) // 60)
    return {id: _start(compiled.get(id, []), cold.get(id), asked.get(id, [])) for id in first}


def _start(
    compiled: list[float],
    cold: tuple[float, int] | None,
    asked: list[tuple[int, int, float, float]],
) -> JudgedStart:
    total, minute = cold or (None, 0)
    return JudgedStart(
        compile_time=sum(sorted(compiled)) or None,
        cold_start=total,
        cold_start_minute=minute,
        hits=sum(row[0] for row in asked),
        misses=sum(row[1] for row in asked),
        hit_seconds=sum(sorted(row[2] for row in asked)),
        miss_seconds=sum(sorted(row[3] for row in asked)),
    )
