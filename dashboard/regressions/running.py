"""Comparisons kept between sweeps in this process; a worker that has none yet builds it from the rows, with the same result."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judging import instance_minutes
from dashboard.fleet.selectors.judging_states import Starts, instance_states
from dashboard.fleet.selectors.ways import Changed, changed_ways
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.minutes import InstanceMinute
from dashboard.regressions.judge.sequential import DAY
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.states import InstanceState

KEPT = 200


@dataclass
class Running:
    """A comparison with its settings, the first minute that is not in it yet, which late data it has seen, and what runs in another way."""

    comparison: Comparison
    next_minute: int
    late_folds: tuple[int, int]
    changed: Changed
    starts: Starts = field(default_factory=dict)
    """What is known of how instances started; read once each."""


_running: OrderedDict[tuple[int, int], Running] = OrderedDict()
_guard = Lock()


def comparison_at(*, deployment: Deployment, baseline: Deployment, now_minute: int, settings: Settings) -> Comparison:
    """The comparison with every minute before `now_minute` in it; late data or other settings since the last look mean building it anew."""
    key = (deployment.pk, baseline.pk)
    late = (deployment.version.late_folds, baseline.version.late_folds)
    changed = changed_ways(deployment=deployment, baseline=baseline)
    with _guard:
        found = _running.pop(key, None)
    fits = found is not None and (found.late_folds, found.changed, found.comparison.settings) == (late, changed, settings)
    if found is None or not fits or found.next_minute > now_minute:
        found = Running(Comparison(deployment.started_minute, settings), deployment.started_minute, late, changed)
    _continue(found, deployment, baseline, now_minute)
    if found.comparison.wants_past:
        # The baseline has ended somewhere: what it did on the same hosts a day before is read once, from the start.
        past = Comparison(deployment.started_minute, settings, with_past=True)
        found = Running(past, deployment.started_minute - DAY, late, changed)
        _continue(found, deployment, baseline, now_minute)
    with _guard:
        _running[key] = found
        while len(_running) > KEPT:
            _running.popitem(last=False)
    return found.comparison


def comparisons_forget() -> None:
    """Drops everything that is kept, as a restart does."""
    with _guard:
        _running.clear()


def _continue(running: Running, deployment: Deployment, baseline: Deployment, now_minute: int) -> None:
    for minute, (rows, states) in _by_minute(running, deployment, baseline, now_minute):
        running.comparison.add_minute(minute, rows, states)
    running.next_minute = now_minute


Minute = tuple[list[InstanceMinute], list[InstanceState]]


def _by_minute(running: Running, deployment: Deployment, baseline: Deployment, end: int) -> list[tuple[int, Minute]]:
    minutes: dict[int, Minute] = {}
    span = {"from_minute": running.next_minute, "to_minute": end}
    # A row of the fleet has every field that the judge reads; a copy of each would cost more than judging it.
    for row in instance_minutes(deployment=deployment, baseline=baseline, changed=running.changed, **span):
        minutes.setdefault(row.minute, ([], []))[0].append(cast(InstanceMinute, row))
    for state in instance_states(deployment=deployment, baseline=baseline, starts=running.starts, **span):
        minutes.setdefault(state.minute, ([], []))[1].append(cast(InstanceState, state))
    return sorted(minutes.items(), key=lambda item: item[0])
