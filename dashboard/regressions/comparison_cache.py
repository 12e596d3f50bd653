"""Comparisons kept between sweeps in this process; a worker that has none yet builds it from the rows, with the same result."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple, cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import switched_minutes
from dashboard.fleet.selectors.judge_inputs.execution_modes import Changed, changed_ways
from dashboard.fleet.selectors.judge_inputs.judge_minutes import JudgedMinute, instance_minutes
from dashboard.fleet.selectors.judge_inputs.judge_processes import JudgedState, Starts, instance_states
from dashboard.regressions.judge.before_after import DAY
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.process.inputs import InstanceState
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.stall_coverage import Telling, made_alike, older

KEPT = 200
FORGOTTEN_AFTER = 10
"""Minutes after which nobody asks for a comparison any more."""
LATE_MINUTES = 5
REBUILT_PART = 0.05
"""Late data that goes on coming builds a comparison anew every few minutes at most, and for no larger part of the time."""
PART = 240
"""Minutes that are read at once where a replay looks at each."""


@dataclass
class Running:
    """A comparison with its settings, the first minute that is not in it yet, which late data it has seen, and what runs in another way."""

    comparison: Comparison
    next_minute: int
    late_folds: tuple[int, int]
    changed: Changed
    starts: Starts = field(default_factory=dict)
    """What is known of how instances started; read once each."""
    gpus: dict[str, str] = field(default_factory=dict)
    """The GPU type of an instance when it last called: a row of its process knows the newest one alone."""
    telling: Telling = field(default_factory=Telling)
    late_from: int | None = None
    """The minute from which late data is looked at again, once a comparison was built anew for it."""


_running: OrderedDict[tuple[int, int], Running] = OrderedDict()
_guard = Lock()


def comparison_at(*, deployment: Deployment, baseline: Deployment | None, now_minute: int, settings: Settings) -> Comparison:
    """The comparison with every minute before `now_minute` in it; late data or other settings since the last look mean building it anew.

    Without a baseline it knows the version's own level alone."""
    key = (deployment.pk, baseline.pk if baseline else 0)
    late = _late_folds(deployment, baseline)
    changed = _changed(deployment, baseline)
    with _guard:
        found = _running.pop(key, None)
    fits = found is not None and (found.changed, found.comparison.settings) == (changed, settings) and found.next_minute <= now_minute
    # What came late waits a little after the last time: a sender that is always late would have days read anew every minute.
    waits = found is not None and found.late_from is not None and now_minute < found.late_from
    if found is None or not fits or (found.late_folds != late and not waits):
        rebuilt = found is not None and fits
        began = time.monotonic()
        found = _brought(_begun(deployment, baseline, settings, changed), deployment, baseline, now_minute)
        if rebuilt:
            found.late_from = now_minute + max(LATE_MINUTES, math.ceil((time.monotonic() - began) / 60.0 / REBUILT_PART))
    else:
        found = _brought(found, deployment, baseline, now_minute)
    with _guard:
        _running[key] = found
        while next(iter(_running.values())).next_minute < now_minute - FORGOTTEN_AFTER:
            _running.popitem(last=False)
        if len(_running) > KEPT:
            # Sweeps go through all deployments in one order: letting go of the oldest would drop each one just before its turn.
            _running.popitem()
    return found.comparison


def comparison_replayed(*, deployment: Deployment, baseline: Deployment, until: int, settings: Settings) -> Comparison:
    """A comparison of its own with every minute before `until`, as a worker would have it; what runs is left alone."""
    return _brought(_begun(deployment, baseline, settings, _changed(deployment, baseline)), deployment, baseline, until).comparison


def minutes_replayed(
    *, deployment: Deployment, baseline: Deployment, until: int, settings: Settings
) -> Iterator[tuple[Comparison, list[InstanceMinute]]]:
    """A comparison of its own after each minute, with the calls of that minute; days are read in parts."""
    running = _begun(deployment, baseline, settings, _changed(deployment, baseline))
    while running.next_minute < until:
        end = min(running.next_minute + PART, until)
        for minute, found in _by_minute(running, deployment, baseline, end):
            _take(running, minute, found)
            yield running.comparison, found.rows
        running.next_minute = end


def comparisons_forget() -> None:
    """Drops everything that is kept, as a restart does."""
    with _guard:
        _running.clear()


def _changed(deployment: Deployment, baseline: Deployment | None) -> Changed:
    return changed_ways(deployment=deployment, baseline=baseline) if baseline else {}


def _late_folds(deployment: Deployment, baseline: Deployment | None) -> tuple[int, int]:
    return deployment.version.late_folds, baseline.version.late_folds if baseline else 0


def _begun(deployment: Deployment, baseline: Deployment | None, settings: Settings, changed: Changed) -> Running:
    start = deployment.started_minute
    return Running(Comparison(start, settings), start, _late_folds(deployment, baseline), changed)


def _brought(running: Running, deployment: Deployment, baseline: Deployment | None, now_minute: int) -> Running:
    running = _continued(running, deployment, baseline, now_minute)
    if baseline is None or not running.comparison.wants_past:
        return running
    # The baseline has ended somewhere: what it did on the same hosts a day before is read once, from the start.
    start = deployment.started_minute
    comparison = Comparison(start, running.comparison.settings, with_past=True)
    with_past = Running(
        comparison, start - DAY, running.late_folds, running.changed, running.starts, telling=running.telling, late_from=running.late_from
    )
    return _continued(with_past, deployment, baseline, now_minute)


def _continued(running: Running, deployment: Deployment, baseline: Deployment | None, now_minute: int) -> Running:
    """With every minute before `now_minute`; one that compared what a new row's agent does not report begins again without it."""
    before = running.telling.silent
    minutes = _by_minute(running, deployment, baseline, now_minute)
    if (running.telling.silent - before) & running.comparison.regions.keys():
        known = running.comparison
        start = known.deployed_minute - (DAY if known.with_past else 0)
        comparison = Comparison(known.deployed_minute, known.settings, with_past=known.with_past)
        running = replace(running, comparison=comparison, next_minute=start, gpus={})
        minutes = _by_minute(running, deployment, baseline, now_minute)
    for minute, found in minutes:
        _take(running, minute, found)
    running.next_minute = now_minute
    return running


class Minute(NamedTuple):
    """What is judged of a minute, and the calls that an operator's command made eager: those are traffic, and nothing else."""

    rows: list[InstanceMinute]
    states: list[InstanceState]
    switched: list[InstanceMinute]


def _take(running: Running, minute: int, found: Minute) -> None:
    comparison, telling = running.comparison, running.telling
    comparison.agents_differ, comparison.differ_on_graphs = telling.differ, telling.differ_on_graphs
    rows, states = made_alike(found.rows, telling.silent, _as_older), found.states
    if telling.differ:
        states = [cast(InstanceState, cast(JudgedState, state)._replace(recompiles=None)) for state in states]
    if rows or states:
        comparison.add_minute(minute, rows, states)
        comparison.stalls.add(minute, found.rows)
    if found.switched and minute >= comparison.deployed_minute:
        comparison.adoption.add(minute, found.switched)


def _by_minute(running: Running, deployment: Deployment, baseline: Deployment | None, end: int) -> list[tuple[int, Minute]]:
    minutes: dict[int, Minute] = {}
    span = {"from_minute": running.next_minute, "to_minute": end}
    # What an operator's command did is not the version's doing: those minutes are in no comparison.
    switched = switched_minutes(deployment=deployment, baseline=baseline, **span)
    # A row of the fleet has every field that the judge reads; a copy of each would cost more than judging it.
    for row in instance_minutes(deployment=deployment, baseline=baseline, changed=running.changed, **span):
        of = minutes.setdefault(row.minute, Minute([], [], []))
        (of.switched if row.minute in switched.get(row.instance, ()) else of.rows).append(cast(InstanceMinute, row))
    for state in instance_states(deployment=deployment, baseline=baseline, starts=running.starts, **span):
        if state.minute not in switched.get(state.instance, ()):
            minutes.setdefault(state.minute, Minute([], [], [])).states.append(cast(InstanceState, state))
    ordered = sorted(minutes.items(), key=lambda item: item[0])
    for _, found in ordered:
        running.telling.see(found.rows)
        _place(running.gpus, found.rows, found.states)
    return ordered


def _as_older(row: InstanceMinute) -> InstanceMinute:
    return cast(InstanceMinute, cast(JudgedMinute, row)._replace(**older(row)))


def _place(gpus: dict[str, str], rows: list[InstanceMinute], states: list[InstanceState]) -> None:
    """Puts each process where its calls were in that minute: an instance may come back on another GPU type under the same id."""
    for row in rows:
        gpus[str(row.instance)] = str(row.stratum[0])
    for number, state in enumerate(states):
        gpu = gpus.get(str(state.instance))
        if gpu is not None and gpu != state.stratum[0]:
            states[number] = cast(InstanceState, cast(JudgedState, state)._replace(stratum=(gpu, *state.stratum[1:])))
