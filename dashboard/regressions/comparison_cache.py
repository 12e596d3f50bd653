"""Comparison cache: keeps comparisons between sweeps in this process. A worker without a cached
comparison rebuilds it from the rows, with the same result."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple, cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.day_hours import read_day_hours
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import read_excluded_minutes
from dashboard.fleet.selectors.judge_inputs.execution_modes import ModeChanges, read_mode_changes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import JudgedMinute, read_instance_minutes
from dashboard.fleet.selectors.judge_inputs.judge_processes import (
    JudgedProcessMinute,
    Starts,
    read_process_minutes,
)
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.day_history import HISTORY_DAYS, DayHistory
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.neighbours import NeighbourMinute
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.stall_coverage import StallCoverage, align_rows, downgrade_columns
from dashboard.regressions.neighbour_reader import Controls, fit_controls

MAX_COMPARISONS = 200
EXPIRE_AFTER_MINUTES = 10
"""Minutes without a request after which a comparison is dropped."""
LATE_MINUTES = 5
MAX_REBUILD_SHARE = 0.05
"""Upper bound on the share of time that continuing late data spends on rebuilds; a comparison is
rebuilt every few minutes at most."""
REPLAY_CHUNK_MINUTES = 240
"""Minutes per query of a replay that evaluates each minute."""


@dataclass
class CachedComparison:
    """A comparison with its settings, its next minute, the late data that it includes, and its
    changes of execution mode."""

    comparison: Comparison
    next_minute: int
    late_folds: tuple[int, int]
    changed: ModeChanges
    settings: Settings
    controls: Controls = field(default_factory=Controls)
    starts: Starts = field(default_factory=dict)
    """Known start-ups of instances; each is read once."""
    gpus: dict[str, str] = field(default_factory=dict)
    """The GPU type of an instance at its last call. The row of its process stores only the newest
    one."""
    telling: StallCoverage = field(default_factory=StallCoverage)
    late_from: int | None = None
    """After a rebuild for late data: the minute from which late data may cause another rebuild."""


_cache: OrderedDict[tuple[int, int], CachedComparison] = OrderedDict()
_lock = Lock()


def get_comparison(
    *, deployment: Deployment, baseline: Deployment | None, now_minute: int, settings: Settings
) -> Comparison:
    """The comparison with every minute before `now_minute`. Late data or changed settings cause a
    rebuild.

    Without a baseline, the comparison contains only the level of the version.
    """
    key = (deployment.pk, baseline.pk if baseline else 0)
    late = _late_folds(deployment, baseline)
    changed = _changed(deployment, baseline)
    with _lock:
        found = _cache.pop(key, None)
    fits = (
        found is not None
        and (found.changed, found.settings) == (changed, settings)
        and found.next_minute <= now_minute
    )
    # A rebuild for late data waits for a while after the previous one. Otherwise a sender that is
    # always late would cause days of minutes to be read every minute.
    waits = found is not None and found.late_from is not None and now_minute < found.late_from
    if found is None or not fits or (found.late_folds != late and not waits):
        rebuilt = found is not None and fits
        began = time.monotonic()
        found = _advance_with_past(
            _start_comparison(deployment, baseline, settings, changed),
            deployment,
            baseline,
            now_minute,
        )
        if rebuilt:
            found.late_from = now_minute + max(
                LATE_MINUTES, math.ceil((time.monotonic() - began) / 60.0 / MAX_REBUILD_SHARE)
            )
    else:
        found = _advance_with_past(found, deployment, baseline, now_minute)
    _cache_comparison(key, found, now_minute)
    return found.comparison


def _cache_comparison(key: tuple[int, int], found: CachedComparison, now_minute: int) -> None:
    """Stores a comparison, and drops those without a recent request."""
    with _lock:
        _cache[key] = found
        while next(iter(_cache.values())).next_minute < now_minute - EXPIRE_AFTER_MINUTES:
            _cache.popitem(last=False)
        if len(_cache) > MAX_COMPARISONS:
            # Sweeps visit all deployments in one order. Eviction of the oldest comparison would
            # drop each one just before its turn.
            _cache.popitem()


def replay_comparison(
    *, deployment: Deployment, baseline: Deployment, until: int, settings: Settings
) -> Comparison:
    """A separate comparison with every minute before `until`, as a worker would hold it. The cached
    comparison is not changed."""
    return _advance_with_past(
        _start_comparison(deployment, baseline, settings, _changed(deployment, baseline)),
        deployment,
        baseline,
        until,
    ).comparison


def replay_minutes(
    *, deployment: Deployment, baseline: Deployment, until: int, settings: Settings
) -> Iterator[tuple[Comparison, list[InstanceMinute]]]:
    """A separate comparison after each minute, with the calls of that minute. Days are read in
    chunks."""
    running = _start_comparison(deployment, baseline, settings, _changed(deployment, baseline))
    while running.next_minute < until:
        end = min(running.next_minute + REPLAY_CHUNK_MINUTES, until)
        for minute, found in _read_minutes(running, deployment, baseline, end):
            _add_minute(running, minute, found)
            yield running.comparison, found.rows
        running.next_minute = end


def clear_comparisons() -> None:
    """Drops all cached comparisons, as a restart does."""
    with _lock:
        _cache.clear()


def _changed(deployment: Deployment, baseline: Deployment | None) -> ModeChanges:
    return read_mode_changes(deployment=deployment, baseline=baseline) if baseline else {}


def _late_folds(deployment: Deployment, baseline: Deployment | None) -> tuple[int, int]:
    return deployment.version.late_folds, baseline.version.late_folds if baseline else 0


def _start_comparison(
    deployment: Deployment, baseline: Deployment | None, settings: Settings, changed: ModeChanges
) -> CachedComparison:
    # The day before the deployment shows how the nodes of the baseline differ, and how far other
    # models on the nodes share their disturbances.
    start, late = deployment.started_minute, _late_folds(deployment, baseline)
    if baseline is None:
        return CachedComparison(Comparison(start, settings), start, late, changed, settings)
    controls = fit_controls(
        deployment=deployment, baseline=baseline, changed=changed, settings=settings
    )
    comparison = Comparison(start, controls.fitted.control(settings))
    return CachedComparison(comparison, start - DAY_MINUTES, late, changed, settings, controls)


def _advance_with_past(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, now_minute: int
) -> CachedComparison:
    running = _advance(running, deployment, baseline, now_minute)
    if baseline is None or not running.comparison.wants_past:
        return running
    # The baseline has ended somewhere. Its minutes on the same hosts one day earlier are kept, and
    # earlier days show how far days differ.
    start = deployment.started_minute
    hours = cast(list[InstanceMinute], read_day_hours(deployment=deployment, days=HISTORY_DAYS))
    comparison = Comparison(
        start,
        running.comparison.settings,
        with_past=True,
        days=DayHistory(hours, start),
    )
    with_past = replace(running, comparison=comparison, next_minute=start - DAY_MINUTES, gpus={})
    return _advance(with_past, deployment, baseline, now_minute)


def _advance(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, now_minute: int
) -> CachedComparison:
    """Adds every minute before `now_minute`. If a new row's agent does not report a compared value,
    the comparison restarts without the value."""
    before = running.telling.silent
    minutes = _read_minutes(running, deployment, baseline, now_minute)
    if (running.telling.silent - before) & running.comparison.regions.keys():
        known = running.comparison
        start = known.deployed_minute - (DAY_MINUTES if baseline is not None else 0)
        comparison = Comparison(
            known.deployed_minute, known.settings, with_past=known.with_past, days=known.days
        )
        running = replace(running, comparison=comparison, next_minute=start, gpus={})
        minutes = _read_minutes(running, deployment, baseline, now_minute)
    for minute, found in minutes:
        _add_minute(running, minute, found)
    running.next_minute = now_minute
    return running


class MinuteRows(NamedTuple):
    """The evaluated rows of a minute, and the calls that a kill-switch command made eager. Those
    calls count as traffic only."""

    rows: list[InstanceMinute]
    states: list[InstanceProcessMinute]
    switched: list[InstanceMinute]
    neighbours: list[NeighbourMinute]


def _add_minute(running: CachedComparison, minute: int, found: MinuteRows) -> None:
    comparison, telling = running.comparison, running.telling
    comparison.agents_differ, comparison.differ_on_graphs = telling.differ, telling.differ_on_graphs
    rows, states = align_rows(found.rows, telling.silent, _downgrade_row), found.states
    if telling.differ:
        states = [
            cast(InstanceProcessMinute, cast(JudgedProcessMinute, state)._replace(recompiles=None))
            for state in states
        ]
    running.controls.fitted.step(found.neighbours)
    if rows or states:
        comparison.add_minute(minute, rows, states)
        comparison.stalls.add(minute, found.rows)
    if found.switched and minute >= comparison.deployed_minute:
        comparison.adoption.add(minute, found.switched)


def _read_minutes(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, end: int
) -> list[tuple[int, MinuteRows]]:
    minutes: dict[int, MinuteRows] = {}
    span: dict[str, Any] = {"from_minute": running.next_minute, "to_minute": end}
    # The version did not cause the effects of an operator's command, so those minutes are excluded
    # from comparisons.
    switched = read_excluded_minutes(deployment=deployment, baseline=baseline, **span)
    # A row of the fleet has every field that the judge reads. A copy of each row would cost more
    # than its evaluation.
    for row in read_instance_minutes(
        deployment=deployment, baseline=baseline, changed=running.changed, **span
    ):
        of = minutes.setdefault(row.minute, MinuteRows([], [], [], []))
        (of.switched if row.minute in switched.get(row.instance, ()) else of.rows).append(
            cast(InstanceMinute, row)
        )
    for state in read_process_minutes(
        deployment=deployment, baseline=baseline, starts=running.starts, **span
    ):
        if state.minute not in switched.get(state.instance, ()):
            minutes.setdefault(state.minute, MinuteRows([], [], [], [])).states.append(
                cast(InstanceProcessMinute, state)
            )
    for minute, others in running.controls.read_minutes(
        deployment, running.next_minute, end
    ).items():
        if minute in minutes:
            minutes[minute].neighbours.extend(others)
    ordered = sorted(minutes.items(), key=lambda item: item[0])
    for _, found in ordered:
        running.telling.record_rows(found.rows)
        _assign_gpus(running.gpus, found.rows, found.states)
    return ordered


def _downgrade_row(row: InstanceMinute) -> InstanceMinute:
    return cast(InstanceMinute, cast(JudgedMinute, row)._replace(**downgrade_columns(row)))


def _assign_gpus(
    gpus: dict[str, str], rows: list[InstanceMinute], states: list[InstanceProcessMinute]
) -> None:
    """Assigns each process to the GPU type of its calls in that minute. An instance may return on
    another GPU type under the same ID."""
    for row in rows:
        gpus[str(row.instance)] = str(row.stratum[0])
    for number, state in enumerate(states):
        gpu = gpus.get(str(state.instance))
        if gpu is not None and gpu != state.stratum[0]:
            states[number] = cast(
                InstanceProcessMinute,
                cast(JudgedProcessMinute, state)._replace(stratum=(gpu, *state.stratum[1:])),
            )
