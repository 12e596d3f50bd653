"""Comparisons kept between sweeps in this process; a worker that has none yet builds it from the
rows, with the same result."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple, cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import read_excluded_minutes
from dashboard.fleet.selectors.judge_inputs.execution_modes import ModeChanges, read_mode_changes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import JudgedMinute, read_instance_minutes
from dashboard.fleet.selectors.judge_inputs.judge_processes import (
    JudgedProcessMinute,
    Starts,
    read_process_minutes,
)
from dashboard.regressions.judge.before_after import DAY_MINUTES
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.stall_coverage import StallCoverage, align_rows, downgrade_columns

MAX_COMPARISONS = 200
EXPIRE_AFTER_MINUTES = 10
"""Minutes after which nobody asks for a comparison any more."""
LATE_MINUTES = 5
MAX_REBUILD_SHARE = 0.05
"""Late data that goes on coming builds a comparison anew every few minutes at most, and for no
larger part of the time."""
REPLAY_CHUNK_MINUTES = 240
"""Minutes that are read at once where a replay looks at each."""


@dataclass
class CachedComparison:
    """A comparison with its settings, the first minute that is not in it yet, which late data it
    has seen, and what runs in another way."""

    comparison: Comparison
    next_minute: int
    late_folds: tuple[int, int]
    changed: ModeChanges
    starts: Starts = field(default_factory=dict)
    """What is known of how instances started; read once each."""
    gpus: dict[str, str] = field(default_factory=dict)
    """The GPU type of an instance when it last called: a row of its process knows the newest one
    alone."""
    telling: StallCoverage = field(default_factory=StallCoverage)
    late_from: int | None = None
    """The minute from which late data is looked at again, once a comparison was built anew for
    it."""


_cache: OrderedDict[tuple[int, int], CachedComparison] = OrderedDict()
_lock = Lock()


def get_comparison(
    *, deployment: Deployment, baseline: Deployment | None, now_minute: int, settings: Settings
) -> Comparison:
    """The comparison with every minute before `now_minute` in it; late data or other settings since
    the last look mean building it anew.

    Without a baseline it knows the version's own level alone."""
    key = (deployment.pk, baseline.pk if baseline else 0)
    late = _late_folds(deployment, baseline)
    changed = _changed(deployment, baseline)
    with _lock:
        found = _cache.pop(key, None)
    fits = (
        found is not None
        and (found.changed, found.comparison.settings) == (changed, settings)
        and found.next_minute <= now_minute
    )
    # What came late waits a little after the last time: a sender that is always late would have
    # days read anew every minute.
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
    with _lock:
        _cache[key] = found
        while next(iter(_cache.values())).next_minute < now_minute - EXPIRE_AFTER_MINUTES:
            _cache.popitem(last=False)
        if len(_cache) > MAX_COMPARISONS:
            # Sweeps go through all deployments in one order: letting go of the oldest would drop
            # each one just before its turn.
            _cache.popitem()
    return found.comparison


def replay_comparison(
    *, deployment: Deployment, baseline: Deployment, until: int, settings: Settings
) -> Comparison:
    """A comparison of its own with every minute before `until`, as a worker would have it; what
    runs is left alone."""
    return _advance_with_past(
        _start_comparison(deployment, baseline, settings, _changed(deployment, baseline)),
        deployment,
        baseline,
        until,
    ).comparison


def replay_minutes(
    *, deployment: Deployment, baseline: Deployment, until: int, settings: Settings
) -> Iterator[tuple[Comparison, list[InstanceMinute]]]:
    """A comparison of its own after each minute, with the calls of that minute; days are read in
    parts."""
    running = _start_comparison(deployment, baseline, settings, _changed(deployment, baseline))
    while running.next_minute < until:
        end = min(running.next_minute + REPLAY_CHUNK_MINUTES, until)
        for minute, found in _read_minutes(running, deployment, baseline, end):
            _add_minute(running, minute, found)
            yield running.comparison, found.rows
        running.next_minute = end


def clear_comparisons() -> None:
    """Drops everything that is kept, as a restart does."""
    with _lock:
        _cache.clear()


def _changed(deployment: Deployment, baseline: Deployment | None) -> ModeChanges:
    return read_mode_changes(deployment=deployment, baseline=baseline) if baseline else {}


def _late_folds(deployment: Deployment, baseline: Deployment | None) -> tuple[int, int]:
    return deployment.version.late_folds, baseline.version.late_folds if baseline else 0


def _start_comparison(
    deployment: Deployment, baseline: Deployment | None, settings: Settings, changed: ModeChanges
) -> CachedComparison:
    start = deployment.started_minute
    return CachedComparison(
        Comparison(start, settings), start, _late_folds(deployment, baseline), changed
    )


def _advance_with_past(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, now_minute: int
) -> CachedComparison:
    running = _advance(running, deployment, baseline, now_minute)
    if baseline is None or not running.comparison.wants_past:
        return running
    # The baseline has ended somewhere: what it did on the same hosts a day before is read once,
    # from the start.
    start = deployment.started_minute
    comparison = Comparison(start, running.comparison.settings, with_past=True)
    with_past = CachedComparison(
        comparison,
        start - DAY_MINUTES,
        running.late_folds,
        running.changed,
        running.starts,
        telling=running.telling,
        late_from=running.late_from,
    )
    return _advance(with_past, deployment, baseline, now_minute)


def _advance(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, now_minute: int
) -> CachedComparison:
    """With every minute before `now_minute`; one that compared what a new row's agent does not
    report begins again without it."""
    before = running.telling.silent
    minutes = _read_minutes(running, deployment, baseline, now_minute)
    if (running.telling.silent - before) & running.comparison.regions.keys():
        known = running.comparison
        start = known.deployed_minute - (DAY_MINUTES if known.with_past else 0)
        comparison = Comparison(known.deployed_minute, known.settings, with_past=known.with_past)
        running = replace(running, comparison=comparison, next_minute=start, gpus={})
        minutes = _read_minutes(running, deployment, baseline, now_minute)
    for minute, found in minutes:
        _add_minute(running, minute, found)
    running.next_minute = now_minute
    return running


class MinuteRows(NamedTuple):
    """What is judged of a minute, and the calls that an operator's command made eager: those are
    traffic, and nothing else."""

    rows: list[InstanceMinute]
    states: list[InstanceProcessMinute]
    switched: list[InstanceMinute]


def _add_minute(running: CachedComparison, minute: int, found: MinuteRows) -> None:
    comparison, telling = running.comparison, running.telling
    comparison.agents_differ, comparison.differ_on_graphs = telling.differ, telling.differ_on_graphs
    rows, states = align_rows(found.rows, telling.silent, _downgrade_row), found.states
    if telling.differ:
        states = [
            cast(InstanceProcessMinute, cast(JudgedProcessMinute, state)._replace(recompiles=None))
            for state in states
        ]
    if rows or states:
        comparison.add_minute(minute, rows, states)
        comparison.stalls.add(minute, found.rows)
    if found.switched and minute >= comparison.deployed_minute:
        comparison.adoption.add(minute, found.switched)


def _read_minutes(
    running: CachedComparison, deployment: Deployment, baseline: Deployment | None, end: int
) -> list[tuple[int, MinuteRows]]:
    minutes: dict[int, MinuteRows] = {}
    span = {"from_minute": running.next_minute, "to_minute": end}
    # What an operator's command did is not the version's doing: those minutes are in no comparison.
    switched = read_excluded_minutes(deployment=deployment, baseline=baseline, **span)
    # A row of the fleet has every field that the judge reads; a copy of each would cost more than
    # judging it.
    for row in read_instance_minutes(
        deployment=deployment, baseline=baseline, changed=running.changed, **span
    ):
        of = minutes.setdefault(row.minute, MinuteRows([], [], []))
        (of.switched if row.minute in switched.get(row.instance, ()) else of.rows).append(
            cast(InstanceMinute, row)
        )
    for state in read_process_minutes(
        deployment=deployment, baseline=baseline, starts=running.starts, **span
    ):
        if state.minute not in switched.get(state.instance, ()):
            minutes.setdefault(state.minute, MinuteRows([], [], [])).states.append(
                cast(InstanceProcessMinute, state)
            )
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
    """Puts each process where its calls were in that minute: an instance may come back on another
    GPU type under the same id."""
    for row in rows:
        gpus[str(row.instance)] = str(row.stratum[0])
    for number, state in enumerate(states):
        gpu = gpus.get(str(state.instance))
        if gpu is not None and gpu != state.stratum[0]:
            states[number] = cast(
                InstanceProcessMinute,
                cast(JudgedProcessMinute, state)._replace(stratum=(gpu, *state.stratum[1:])),
            )
