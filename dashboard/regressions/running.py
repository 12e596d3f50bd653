"""Comparisons kept between sweeps in this process; a worker that has none yet builds it from the rows, with the same result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judging import instance_minutes
from dashboard.fleet.selectors.ways import Changed, changed_ways
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.minutes import InstanceMinute
from dashboard.regressions.judge.sequential import DAY
from dashboard.regressions.judge.settings import Settings

KEPT = 200


@dataclass
class Running:
    """A comparison with its settings, the first minute that is not in it yet, which late data it has seen, and what runs in another way."""

    comparison: Comparison
    next_minute: int
    late_folds: tuple[int, int]
    changed: Changed


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
    for minute, rows in _by_minute(deployment, baseline, running.next_minute, now_minute, running.changed):
        running.comparison.add_minute(minute, rows)
    running.next_minute = now_minute


def _by_minute(
    deployment: Deployment, baseline: Deployment, start: int, end: int, changed: Changed
) -> Iterable[tuple[int, list[InstanceMinute]]]:
    minutes: dict[int, list[InstanceMinute]] = {}
    for row in instance_minutes(deployment=deployment, baseline=baseline, from_minute=start, to_minute=end, changed=changed):
        # A row of the fleet has every field that the judge reads; a copy of each would cost more than judging it.
        minutes.setdefault(row.minute, []).append(cast(InstanceMinute, row))
    return sorted(minutes.items())
