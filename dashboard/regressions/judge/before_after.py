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

- a day before is adjusted for the weekday where earlier weeks show a weekly cycle (`day_history`);
- the layout of a host is fixed at its first compared minute;
- a bin closes with at least `bin_calls` samples, and the reference of that bin must have as many;
- minutes more than a day after the last minute of the baseline are not compared;
- instances on hosts without such a past are compared with the pool of all hosts (`pool_past`).

Source: analysis of covariance with a common within-group slope (Fisher, Statistical Methods for
Research Workers, 4th ed., 1932).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from dashboard.regressions.judge.inputs import Arm, CellKey, CellRows, InstanceMinute, Stratum
from dashboard.regressions.judge.past_levels import DAY_MINUTES, PastLevels
from dashboard.regressions.judge.pooled_estimate import Total
from dashboard.regressions.judge.settings import RatioMetric, Settings

MAX_SLOPE = 0.2
"""A load slope outside +-MAX_SLOPE is treated as chance."""

K = TypeVar("K", str, str | int)
Loads = Mapping[tuple[Arm, str], float]
"""The log of calls per minute and instance, by arm and host."""
NoPastReason = Literal[
    "",
    "no_baseline_in_stratum",
    "no_baseline_on_host",
    "past_too_short",
    "after_the_baseline_ended",
]


class Adjustment(NamedTuple):
    """The adjustment of a comparison with the past: the slope of log level over log load, and
    the expected change from the day before."""

    slope: float
    shift: float = 0.0


class Closed(NamedTuple):
    """A bin of the candidate: its minutes, and its change from the past."""

    span: int
    change: float


class Hosts:
    """Times and hosts of the baseline of one region. They decide the layout in which a minute is
    compared."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: dict[Stratum, list[int]] = {}
        self._lives: dict[tuple[Stratum, str], list[int]] = {}
        self._followed: set[Stratum] = set()
        self._alternating: set[Stratum] = set()

    def seen(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Records the baseline's steady calls of a minute."""
        for (stratum, _), cell in rows.items():
            if cell.baseline:
                if stratum in self._followed and self.gone(stratum, minute):
                    self._alternating.add(stratum)
                self._pools.setdefault(stratum, [minute, minute])[1] = minute
                for row in cell.baseline:
                    self._lives.setdefault((stratum, row.host), [minute, minute])[1] = minute

    def gone(self, stratum: Stratum, minute: int) -> bool:
        """True if the baseline ran in the stratum and has been absent for `gone_minutes`. A pause
        between calls is not an end."""
        pool = self._pools.get(stratum)
        return pool is not None and minute - pool[1] >= self._settings.gone_minutes

    def follow(self, stratum: Stratum) -> None:
        """Records that the candidate was called after the baseline had ended."""
        self._followed.add(stratum)

    def alternates(self, stratum: Stratum) -> bool:
        """True if the baseline returned after the candidate had followed it."""
        return stratum in self._alternating

    def find_no_past_reason(self, stratum: Stratum, host: str, minute: int) -> NoPastReason:
        """Empty if the host, or else the pool of all hosts, has a past to compare this minute with;
        otherwise the reason."""
        pool = self._pools.get(stratum)
        if pool is None:
            return "no_baseline_in_stratum"
        life = self._lives.get((stratum, host)) if host else None
        of_pool = host and stratum not in self._alternating
        known = pool if of_pool and (life is None or not self._is_long(life)) else life
        if known is None:
            return "no_baseline_on_host"
        if minute - known[1] > DAY_MINUTES:
            return "after_the_baseline_ended"
        if self._is_long(known):
            return ""
        return "past_too_short" if life else "no_baseline_on_host"

    def _is_long(self, life: list[int]) -> bool:
        return life[1] - life[0] + 1 >= self._settings.past_minutes


class HostHistory:
    """One host, or one instance next to a pool, in one cell of one metric: the candidate's sums,
    compared with a past of the baseline."""

    __slots__ = (
        "_load",
        "_opened",
        "_samples",
        "_span",
        "_step",
        "_terms",
        "aligned",
        "last",
        "level",
        "load",
        "minutes",
        "past",
        "reference",
    )

    def __init__(self, past: PastLevels) -> None:
        self.past = past
        self.aligned: bool | None = None
        self.minutes = 0
        self.level = self.reference = self.load = 0.0
        self.last = 0
        """The candidate's last minute."""
        self._terms: list[float] = []
        self._opened = self._span = self._step = self._samples = 0
        self._load = 0.0

    def add(
        self,
        minute: int,
        term: float,
        samples: int,
        load: float,
        adjust: Adjustment,
        settings: Settings,
    ) -> Closed | None:
        """Adds a minute of the candidate. Returns the bin that the minute closes, else None."""
        past = self.past
        if minute - past.last > DAY_MINUTES or past.length < settings.past_minutes:
            return None
        self.last = minute
        if self.aligned is None:
            self.aligned = past.covers_day_before(minute)
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
        enough = self._samples >= settings.bin_calls
        closed = self._close(minute, adjust, settings.bin_calls) if enough else None
        if closed or width == widest:
            self._discard()
        else:
            self._step += 1
        return closed

    def _close(self, minute: int, adjust: Adjustment, least: int) -> Closed | None:
        span, level = self._span, math.fsum(self._terms) / self._samples
        reference = self.past.day_before(self._opened, minute, least) if self.aligned else 0.0
        if reference is None:
            return None
        reference += adjust.shift if self.aligned else 0.0
        load = self._load / span
        self.minutes += span
        self.level += span * level
        self.reference += span * reference
        self.load += span * load
        return Closed(span, level - reference - self.expected(load, adjust.slope))

    def expected(self, load: float, slope: float) -> float:
        """The level expected at a load from a past without the same minute; 0 where that minute is
        already subtracted."""
        return 0.0 if self.aligned else self.past.expected(load, slope)

    def total(self, slope: float) -> Total:
        """The candidate's sums on this host."""
        total = Total()
        total.minutes, total.level, total.last = self.minutes, self.level, self.last
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
HOST: Callable[[InstanceMinute], str] = attrgetter("host")


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


def sum_levels(
    rows: Iterable[InstanceMinute], metric: RatioMetric, key: Callable[[InstanceMinute], K]
) -> dict[K, tuple[float, int]]:
    """The sum of log levels times samples, and the samples, by the key of the rows, which is their
    host or their unit."""
    terms: dict[K, list[float]] = {}
    counts: dict[K, int] = {}
    for row in rows:
        value, samples = metric.value(row), metric.samples(row)
        if row.host and value is not None and samples > 0 and 0.0 < value < math.inf:
            name = key(row)
            terms.setdefault(name, []).append(metric.worse * samples * math.log(value))
            counts[name] = counts.get(name, 0) + samples
    return {name: (math.fsum(found), counts[name]) for name, found in terms.items()}


def add_past(
    places: HostHistories, minute: int, levels: Mapping[str, tuple[float, int]], loads: Loads
) -> None:
    """Adds the baseline's minute to the past of its hosts."""
    for host, (term, samples) in levels.items():
        place = places.get(host)
        if place is None:
            place = places[host] = HostHistory(PastLevels())
        place.past.add(minute, term, samples, loads["baseline", host])


def compare_hosts(
    places: HostHistories,
    minute: int,
    rows: Iterable[InstanceMinute],
    loads: Loads,
    metric: RatioMetric,
    adjust: Adjustment,
    settings: Settings,
) -> list[Closed]:
    """Compares the candidate's minute with the past of its hosts. Returns the bins that it
    closes."""
    found = []
    for host, (term, samples) in sum_levels(rows, metric, HOST).items():
        place = places[host]
        closed = place.add(minute, term, samples, loads["candidate", host], adjust, settings)
        if closed:
            found.append(closed)
    return found


def fit_load_slope(places: Iterable[HostHistory]) -> float:
    """The pooled within-host slope of log level over log load, over the past of all hosts."""
    spreads = [place.past.spread() for place in places]
    width = math.fsum(of_load for _, of_load in spreads)
    return (
        max(-MAX_SLOPE, min(MAX_SLOPE, math.fsum(both for both, _ in spreads) / width))
        if width > 1e-9
        else 0.0
    )


def sum_totals(places: Mapping[K, HostHistory], slope: float) -> dict[str | int, Total]:
    """The candidate's sums, by host or instance."""
    return {host: place.total(slope) for host, place in places.items() if place.minutes}
