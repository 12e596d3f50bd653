"""Run: one process or job of a version, with the minutes that are compared.

Algorithm: the marginal standard error rule (MSER) for the warm-up of a simulation. Of the starts
within the first third of a run, it takes the one after which the mean level has the smallest
squared standard error, `sum((level - mean)^2) / n^2`. An earlier start with nearly the same error
is preferred, because minutes without warm-up differ by chance.

Invariants:

- the first minute of a run of at least three minutes is always excluded, because it is partial;
- a run that continues is compared at fixed ages: its first 5, 10, 20 and 40 steady minutes. The
  value at such an age does not depend on later minutes;
- a run that has ended is compared as a whole, as far as it was read.

Source: White, An effective truncation heuristic for bias reduction in simulation output,
Simulation 69(6), 1997.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.regressions.judge.call_metrics import wall_middle
from dashboard.regressions.judge.inputs import Arm, CellKey, InstanceMinute

RUN_MINUTES = 60
"""Minutes of a run that are compared."""
LOOK_MINUTES = (5, 10, 20, 40)
"""Steady minutes after which a run that continues is compared."""
NEARLY = 1.25
"""Factor to the smallest error within which the earliest start is taken."""
SESSION_MINUTES = 60
"""Runs of one version that start within this time share the state of their machines."""


@dataclass(frozen=True, slots=True)
class Run:
    """A process or job with its closed minutes, outermost regions only.

    `unit` is the name that evidence shows. `ended` is True if no further minutes are expected.
    """

    unit: str
    version: str
    arm: Arm
    first_minute: int
    ended: bool
    rows: tuple[InstanceMinute, ...]
    host: str = ""


class SteadyRun(NamedTuple):
    """The compared part of a run: its rows after warm-up. `age` is the number of minutes since its
    start that are compared or excluded."""

    run: Run
    rows: tuple[InstanceMinute, ...]
    excluded: int
    minutes: int
    age: int


def count_unsettled(levels: Sequence[float]) -> int:
    """Number of first minutes to exclude, at most a third of all."""
    errors = {start: compute_mser(levels[start:]) for start in range(1, len(levels) // 3 + 1)}
    least = min(errors.values(), default=0.0)
    return next((start for start, error in errors.items() if error <= NEARLY * least), 0)


def compute_mser(levels: Sequence[float]) -> float:
    """The squared standard error of the mean of these levels, by the marginal rule."""
    mean = math.fsum(levels) / len(levels)
    return math.fsum((level - mean) ** 2 for level in levels) / len(levels) ** 2


def take_steady_part(run: Run, max_age: int | None = None) -> SteadyRun | None:
    """The part of a run that is compared, of its first `max_age` minutes; None while there is none.

    A run that continues is compared at the last of LOOK_MINUTES that it has passed.
    """
    by_minute: dict[int, list[InstanceMinute]] = {}
    for row in run.rows:
        if row.calls > 0 and (max_age is None or row.minute - run.first_minute < max_age):
            by_minute.setdefault(row.minute, []).append(row)
    minutes = sorted(by_minute)[:RUN_MINUTES]
    if not minutes:
        return None
    if run.ended:
        return _cut(run, by_minute, minutes, _count_unsettled_minutes(by_minute, minutes))
    for look in reversed(LOOK_MINUTES):
        for count in range(look + 1, min(len(minutes), look + look // 2 + 2) + 1):
            excluded = _count_unsettled_minutes(by_minute, minutes[:count])
            if count - excluded >= look:
                return _cut(run, by_minute, minutes[: excluded + look], excluded)
    return None


def _count_unsettled_minutes(
    by_minute: Mapping[int, Sequence[InstanceMinute]], minutes: Sequence[int]
) -> int:
    return count_unsettled(list_levels([by_minute[minute] for minute in minutes]))


def _cut(
    run: Run,
    by_minute: Mapping[int, Sequence[InstanceMinute]],
    minutes: Sequence[int],
    excluded: int,
) -> SteadyRun:
    kept = minutes[excluded:]
    rows = tuple(row for minute in kept for row in by_minute[minute])
    return SteadyRun(run, rows, excluded, len(kept), minutes[-1] - run.first_minute + 1)


def list_levels(minutes: Sequence[Sequence[InstanceMinute]]) -> list[float]:
    """The mean log level of each minute, relative to the run's mean in the same cells; 0 for a
    minute without a level."""
    cells: dict[tuple[str, CellKey], list[float]] = {}
    for rows in minutes:
        for row in rows:
            level = read_log_level(row)
            if level is not None:
                sums = cells.setdefault(key_of(row), [0.0, 0.0])
                sums[0] += row.calls * level
                sums[1] += row.calls
    return [_mean_difference(rows, cells) for rows in minutes]


def _mean_difference(
    rows: Iterable[InstanceMinute], cells: Mapping[tuple[str, CellKey], list[float]]
) -> float:
    terms, calls = [], 0
    for row in rows:
        level = read_log_level(row)
        if level is not None:
            total, count = cells[key_of(row)]
            terms.append(row.calls * (level - total / count))
            calls += row.calls
    return math.fsum(terms) / calls if calls else 0.0


def key_of(row: InstanceMinute) -> tuple[str, CellKey]:
    """Region, stratum and bucket of a row."""
    return row.region, (row.stratum, row.bucket)


def read_log_level(row: InstanceMinute) -> float | None:
    """The log of the middle call duration; None if it was not measured."""
    value = wall_middle(row)
    return math.log(value) if value is not None and 0.0 < value < math.inf else None


def assign_sessions(runs: Iterable[Run]) -> dict[str, str]:
    """The session of each run, by the name of the session's first run. A session has the runs of
    one version that start within SESSION_MINUTES of its first one."""
    found: dict[str, str] = {}
    open_sessions: dict[tuple[str, str], tuple[int, str]] = {}
    for run in sorted(runs, key=lambda run: (run.first_minute, run.unit)):
        key = (run.arm, run.version)
        start, name = open_sessions.get(key, (run.first_minute, run.unit))
        if run.first_minute - start >= SESSION_MINUTES:
            start, name = run.first_minute, run.unit
        open_sessions[key] = (start, name)
        found[run.unit] = name
    return found
