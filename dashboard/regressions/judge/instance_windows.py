"""Instance windows: calls and events of single instances over the last minutes, and the rule for
affected instances.

A share of few calls is not a finding. An agent samples one second in ten of short calls. An
instance with twenty calls a minute therefore has about thirty sampled calls in 15 minutes, and one
eager call among them is a share of 3%. If a metric sets a `tail`, an instance is affected only if

- its last minutes contain at least `affected_events` events, or its calls since the deployment do;
- the lower end of the one-sided Clopper-Pearson interval of that share, from the sampled calls
  alone, is above `threshold`.

The lower end is above the threshold exactly when that number of events would be rarer than `tail`
at a share of `threshold`. The interval is exact for any number of calls, so it separates cases that
one rule of thumb cannot: five of five calls are a finding, five of three hundred are not.

The number of events is required, too, because calls are not independent: one request may make two
or three calls. All calls since the deployment serve an instance with few calls. Its last minutes
must also show the events, or a recovered instance would stay affected.

The baseline has a weaker condition: a share above `threshold`, with any number of events, makes it
`suspected`. A suspected baseline disables the rule, and rates are compared instead. A baseline that
may show the same events must not count as clean.

Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the
binomial, Biometrika 26, 1934.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from scipy.special import bdtrc

from dashboard.regressions.judge.inputs import InstanceMinute, Stratum
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.pooled_estimate import Unit, evict_units
from dashboard.regressions.judge.rate_ratio import FRESH_MINUTES
from dashboard.regressions.judge.settings import AffectedMetric


class InstanceWindow:
    """Calls and events of one instance: over the last minutes, and since the deployment. `host` is
    that of its last calls, empty if not reported."""

    __slots__ = ("all_calls", "all_events", "calls", "causes", "events", "host", "last", "minutes")

    def __init__(self) -> None:
        self.minutes: deque[list[int]] = deque()
        self.calls = self.events = self.all_calls = self.all_events = 0
        self.causes: dict[str, int] = {}
        self.last = 0
        self.host = ""

    def add(self, minute: int, calls: int, events: int) -> None:
        """Adds calls to the last minute or to a new one."""
        minutes = self.minutes
        self.last = minute
        if minutes and minutes[-1][0] == minute:
            last = minutes[-1]
            last[1] += calls
            last[2] += events
        else:
            minutes.append([minute, calls, events])
        self.calls += calls
        self.all_calls += calls
        self.events += events
        self.all_events += events

    def shows(self, after: int, share: float) -> bool:
        """True if events exceed a share of the calls after a minute."""
        calls = events = 0
        for minute, more_calls, more_events in reversed(self.minutes):
            if minute <= after:
                break
            calls, events = calls + more_calls, events + more_events
        return events > share * calls

    def drop_until(self, until: int) -> None:
        """Drops minutes up to and including `until`."""
        minutes = self.minutes
        while minutes and minutes[0][0] <= until:
            _, calls, events = minutes.popleft()
            self.calls -= calls
            self.events -= events


InstanceWindows = dict[Stratum, dict[Unit, InstanceWindow]]
Instances = list[tuple[Stratum, Unit]]


class WindowSurvey(NamedTuple):
    """Instances with enough calls, suspected ones, affected ones, and those whose newest minutes
    also show the events."""

    judged: Instances
    suspected: Instances
    affected: Instances
    fresh: Instances


def effective_instances(units: Mapping[Unit, InstanceWindow]) -> float:
    """Effective number of instances (Kish, 1965): instances with very few calls contribute very
    little."""
    calls = [float(window.all_calls) for window in units.values()]
    return math.fsum(calls) ** 2 / math.fsum([each * each for each in calls])


def add_rows(
    windows: InstanceWindows,
    stratum: Stratum,
    minute: int,
    rows: list[InstanceMinute],
    metric: AffectedMetric,
) -> tuple[int, int]:
    """Adds the rows of one cell to the windows of their instances. Returns their total calls and
    events."""
    if not rows:
        return 0, 0
    all_calls = all_events = 0
    units = windows.setdefault(stratum, {})
    events_of, calls_of = metric.events, metric.calls
    for row in rows:
        calls = calls_of(row)
        if not calls:
            continue
        window = units.get(row.unit)
        if window is None:
            evict_units(units, minute)
            window = units[row.unit] = InstanceWindow()
        events = events_of(row)
        window.host = row.host
        window.add(minute, calls, events)
        all_calls += calls
        all_events += events
        if events:
            for cause, count in metric.causes(row).items():
                window.causes[cause] = window.causes.get(cause, 0) + count
    return all_calls, all_events


def sum_causes(windows: InstanceWindows) -> dict[str, int]:
    """The events by cause, most frequent first."""
    counts: dict[str, int] = {}
    for units in windows.values():
        for window in units.values():
            for cause, count in window.causes.items():
                counts[cause] = counts.get(cause, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def survey_windows(
    windows: InstanceWindows,
    minute: int,
    metric: AffectedMetric,
    seen: Mapping[Stratum, int] | None = None,
) -> WindowSurvey:
    """Classifies the instances by their last minutes.

    If a stratum was last `seen` earlier, within a day, the minutes before that time count.
    """
    found = WindowSurvey([], [], [], [])
    for stratum, units in windows.items():
        last = seen.get(stratum, minute) if seen else minute
        last = last if minute - last <= DAY_MINUTES else minute
        for unit, window in units.items():
            window.drop_until(last - metric.window_minutes)
            if not has_enough_calls(window, metric):
                continue
            key = (stratum, unit)
            found.judged.append(key)
            if window.events <= metric.threshold * window.calls:
                continue
            few = metric.affected_events if metric.tail is None else 1
            if window.events >= few:
                found.suspected.append(key)
            if is_affected(window, metric):
                found.affected.append(key)
                if window.shows(last - FRESH_MINUTES, metric.threshold / 2):
                    found.fresh.append(key)
    return found


def has_enough_calls(window: InstanceWindow, metric: AffectedMetric) -> bool:
    """True if an instance has the required number of calls. With a `tail`, calls since the
    deployment count."""
    if metric.tail is None:
        return window.calls >= metric.least
    return window.calls > 0 and (window.all_calls >= metric.least or is_affected(window, metric))


def is_affected(window: InstanceWindow, metric: AffectedMetric) -> bool:
    """True if an instance with a share above the threshold is affected: see the rule above."""
    if metric.tail is None:
        return window.events >= metric.affected_events
    return exceeds_threshold(window.events, window.calls, metric) or exceeds_threshold(
        window.all_events, window.all_calls, metric
    )


def exceeds_threshold(events: int, calls: int, metric: AffectedMetric) -> bool:
    """True if there are at least `affected_events` events, and that number is rarer than `tail` at
    a share of `threshold`."""
    if events < metric.affected_events or metric.tail is None:
        return False
    return float(bdtrc(events - 1, calls, metric.threshold)) < metric.tail
