"""Before-after comparison: a version that follows its baseline on the same hosts, with each host as
its own control.

Two layouts, by host:

- day before: if the past covers the same minute 24 h earlier, that minute is subtracted from the
  candidate's (a lag of one day removes the time of day);
- past by load: with a shorter past, at least `past_minutes`, the host's mean is adjusted for load.

The adjustment is an analysis of covariance: one slope of log level over log load, fitted by least
squares within hosts and pooled over all hosts, clipped to +-MAX_SLOPE. The load is calls per minute
and instance.

Invariants:

- the layout of a host is fixed at its first compared minute;
- a bin closes with at least `bin_calls` samples, and the reference of that bin must have as many;
- minutes more than a day after the last minute of the baseline are not compared.

Source: analysis of covariance with a common within-group slope (Fisher, Statistical Methods for
Research Workers, 4th ed., 1932).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Literal

from dashboard.regressions.judge.inputs import Arm, CellKey, CellRows, InstanceMinute, Stratum
from dashboard.regressions.judge.pooled_estimate import Total
from dashboard.regressions.judge.settings import RatioMetric, Settings

DAY_MINUTES = 1440
PAST_SLACK_MINUTES = 60
"""Minutes. A past that begins at most this late for a whole day still counts as one."""
NEVER = -(1 << 62)
MAX_SLOPE = 0.2
"""A load slope outside +-MAX_SLOPE is treated as chance."""

Loads = Mapping[tuple[Arm, str], float]
"""The log of calls per minute and instance, by arm and host."""
NoPastReason = Literal[
    "",
    "no_baseline_in_stratum",
    "no_baseline_on_host",
    "past_too_short",
    "after_the_baseline_ended",
]


class Hosts:
    """Times and hosts of the baseline of one region. They decide the layout in which a minute is
    compared."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last: dict[Stratum, int] = {}
        self._lives: dict[tuple[Stratum, str], list[int]] = {}

    def seen(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Records the baseline's steady calls of a minute."""
        for (stratum, _), cell in rows.items():
            if cell.baseline:
                self._last[stratum] = minute
                for row in cell.baseline:
                    self._lives.setdefault((stratum, row.host), [minute, minute])[1] = minute

    def gone(self, stratum: Stratum, minute: int) -> bool:
        """True if the baseline ran in the stratum and has been absent for `gone_minutes`. A pause
        between calls is not an end."""
        last = self._last.get(stratum)
        return last is not None and minute - last >= self._settings.gone_minutes

    def find_no_past_reason(self, stratum: Stratum, host: str, minute: int) -> NoPastReason:
        """Empty if the host has a past to compare this minute with, else the reason."""
        if stratum not in self._last:
            return "no_baseline_in_stratum"
        life = self._lives.get((stratum, host)) if host else None
        if life is None:
            return "no_baseline_on_host"
        if minute - life[1] > DAY_MINUTES:
            return "after_the_baseline_ended"
        return "" if life[1] - life[0] + 1 >= self._settings.past_minutes else "past_too_short"


class HostHistory:
    """One host in one cell of one metric: the baseline's last day on the host, and the candidate's
    sums since."""

    __slots__ = (
        "_levels",
        "_load",
        "_opened",
        "_samples",
        "_span",
        "_stamps",
        "_step",
        "_sums",
        "_terms",
        "_weights",
        "aligned",
        "first",
        "last",
        "level",
        "load",
        "minutes",
        "reference",
    )

    def __init__(self) -> None:
        self._stamps, self._levels, self._weights = (
            array("q", [NEVER]) * DAY_MINUTES,
            array("d", [0.0]) * DAY_MINUTES,
            array("l", [0]) * DAY_MINUTES,
        )
        self._sums = [0.0] * 5
        self.first: int | None = None
        self.last = NEVER
        self.aligned: bool | None = None
        self.minutes = 0
        self.level = self.reference = self.load = 0.0
        self._terms: list[float] = []
        self._opened = self._span = self._step = self._samples = 0
        self._load = 0.0

    def remember(self, minute: int, term: float, samples: int, load: float) -> None:
        """Adds a minute of the baseline: the sum of log levels times samples, the samples, and the
        load."""
        slot, level = minute % DAY_MINUTES, term / samples
        self._stamps[slot], self._levels[slot], self._weights[slot] = minute, term, samples
        self.first = minute if self.first is None else self.first
        self.last = minute
        for number, value in enumerate((1.0, load, level, load * load, load * level)):
            self._sums[number] += value

    def spread(self) -> tuple[float, float]:
        """Cross-product of load and level, and sum of squares of load, in the past, around this
        host's means."""
        n, x, y, xx, xy = self._sums
        return (xy - x * y / n, xx - x * x / n) if n else (0.0, 0.0)

    def add(
        self, minute: int, term: float, samples: int, load: float, settings: Settings
    ) -> tuple[int, float, float] | None:
        """Adds a minute of the candidate. Returns span, level and load of the bin that the minute
        closes, else None."""
        if (
            self.first is None
            or minute - self.last > DAY_MINUTES
            or self.last - self.first + 1 < settings.past_minutes
        ):
            return None
        if self.aligned is None:
            self.aligned = self.first <= minute - DAY_MINUTES + PAST_SLACK_MINUTES
        widest = settings.bin_minutes[-1]
        if self._span and minute - self._opened >= widest:
            self._discard()
        if not self._span:
            self._opened = minute
        self._span += 1
        self._terms.append(term)
        self._samples += samples
        self._load += load
        width = settings.bin_minutes[self._step]
        if (minute + 1) % width:
            return None
        closed = (
            self._close(minute, settings.bin_calls) if self._samples >= settings.bin_calls else None
        )
        if closed or width == widest:
            self._discard()
        else:
            self._step += 1
        return closed

    def _close(self, minute: int, least: int) -> tuple[int, float, float] | None:
        span, level = self._span, math.fsum(self._terms) / self._samples
        reference = self._day_before(self._opened, minute, least) if self.aligned else 0.0
        if reference is None:
            return None
        load = self._load / span
        self.minutes += span
        self.level += span * level
        self.reference += span * reference
        self.load += span * load
        return span, level - reference, load

    def _day_before(self, opened: int, minute: int, least: int) -> float | None:
        slots = [
            at % DAY_MINUTES
            for at in range(opened, minute + 1)
            if self._stamps[at % DAY_MINUTES] == at - DAY_MINUTES
        ]
        samples = sum(self._weights[slot] for slot in slots)
        return (
            math.fsum(self._levels[slot] for slot in slots) / samples if samples >= least else None
        )

    def expected(self, load: float, slope: float) -> float:
        """The level expected at a load from a past without the same minute; 0 where that minute is
        already subtracted."""
        if self.aligned:
            return 0.0
        n, x, y, _, _ = self._sums
        return y / n + slope * (load - x / n)

    def total(self, slope: float) -> Total:
        """The candidate's sums on this host."""
        total = Total()
        total.minutes, total.level = self.minutes, self.level
        reference = (
            self.reference
            if self.aligned
            else self.minutes * self.expected(self.load / self.minutes, slope)
        )
        total.difference = self.level - reference
        return total

    def _discard(self) -> None:
        self._opened = self._span = self._step = self._samples = 0
        self._load = 0.0
        self._terms = []


HostHistories = dict[str, HostHistory]


def compute_loads(rows: Mapping[CellKey, CellRows]) -> Loads:
    """The load of every host in a minute, over all shapes."""
    calls: dict[tuple[Arm, str], int] = {}
    units: dict[tuple[Arm, str], set[str | int]] = {}
    for cell in rows.values():
        for row in (*cell.baseline, *cell.candidate):
            key = (row.arm, row.host)
            calls[key] = calls.get(key, 0) + row.calls
            units.setdefault(key, set()).add(row.unit)
    return {key: math.log(count / len(units[key])) for key, count in calls.items()}


def sum_by_host(rows: list[InstanceMinute], metric: RatioMetric) -> dict[str, tuple[float, int]]:
    """The sum of log levels times samples, and the samples, of each host's instances."""
    terms: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        value, samples = metric.value(row), metric.samples(row)
        if row.host and value is not None and samples > 0 and 0.0 < value < math.inf:
            terms.setdefault(row.host, []).append(metric.worse * samples * math.log(value))
            counts[row.host] = counts.get(row.host, 0) + samples
    return {host: (math.fsum(found), counts[host]) for host, found in terms.items()}


def add_past(places: HostHistories, minute: int, cell: CellRows, metric: RatioMetric) -> None:
    """Adds the baseline's minute to the past of its hosts."""
    for host, (term, samples) in sum_by_host(cell.baseline, metric).items():
        place = places.get(host)
        if place is None:
            place = places[host] = HostHistory()
        place.remember(minute, term, samples, cell.loads["baseline", host])


def compare_with_past(
    places: HostHistories,
    minute: int,
    cell: CellRows,
    metric: RatioMetric,
    slope: float,
    settings: Settings,
) -> tuple[int, float] | None:
    """Compares the candidate's minute with its hosts' past. Returns the longest span and the mean
    difference of the closed bins."""
    spans, changes = [], []
    for host, (term, samples) in sum_by_host(cell.candidate, metric).items():
        place = places.get(host)
        closed = (
            place.add(minute, term, samples, cell.loads["candidate", host], settings)
            if place
            else None
        )
        if place and closed:
            span, level, load = closed
            spans.append(span)
            changes.append(level - place.expected(load, slope))
    return (max(spans), math.fsum(changes) / len(changes)) if spans else None


def fit_load_slope(places: Iterable[HostHistory]) -> float:
    """The pooled within-host slope of log level over log load, over the past of all hosts."""
    spreads = [place.spread() for place in places]
    width = math.fsum(of_load for _, of_load in spreads)
    return (
        max(-MAX_SLOPE, min(MAX_SLOPE, math.fsum(both for both, _ in spreads) / width))
        if width > 1e-9
        else 0.0
    )


def sum_totals(places: HostHistories, slope: float) -> dict[str | int, Total]:
    """The candidate's sums, by host."""
    return {host: place.total(slope) for host, place in places.items() if place.minutes}
