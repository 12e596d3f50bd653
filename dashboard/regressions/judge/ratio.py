"""The running state of a compared level: instances against the baseline of their stratum and bucket."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from .estimate import Estimate, Group, Total, Unit, combine, group, pooled, prior_at, same_hosts
from .minutes import CellKey, CellRows, InstanceMinute, Layout, Stratum, Traffic
from .reading import CALM, Reading
from .sequential import Places, match, remember, slope_of, totals_of
from .settings import Ratio, Settings

Pending = dict[Unit, tuple[list[float], list[int]]]


class Cell:
    """Sums per instance of one stratum and bucket, and the bin that is being filled."""

    __slots__ = ("_base", "_cand", "_opened", "_span", "_step", "baseline", "candidate", "one_sided", "places", "traffic")

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.one_sided = False
        self.baseline: dict[Unit, Total] = {}
        self.candidate: dict[Unit, Total] = {}
        self.places: Places = {}
        self._base: Pending = {}
        self._cand: Pending = {}
        self._opened = self._span = self._step = 0

    def add(self, minute: int, rows: CellRows, metric: Ratio, settings: Settings) -> tuple[int, float] | None:
        """Takes a minute; answers with the bin's span and the candidate's mean difference when it closes a bin."""
        if not self._span:
            if not rows.baseline or not rows.candidate:
                return None
            # Most cells have calls enough in every minute: nothing to gather then.
            base = at_once(rows.baseline, metric, settings.bin_calls)
            cand = at_once(rows.candidate, metric, settings.bin_calls) if base else None
            if base and cand:
                return 1, self._close(1, base, cand)
        return self._gather(minute, rows, metric, settings)

    def _gather(self, minute: int, rows: CellRows, metric: Ratio, settings: Settings) -> tuple[int, float] | None:
        widest = settings.bin_minutes[-1]
        if self._span and minute - self._opened >= widest:
            self._discard()
        if not self._span:
            self._opened = minute
        self._span += 1
        fill(self._base, rows.baseline, metric)
        fill(self._cand, rows.candidate, metric)
        if not self._base or not self._cand:
            self.one_sided = bool(rows.baseline and rows.candidate)
            self._discard()
            return None
        width = settings.bin_minutes[self._step]
        if (minute + 1) % width:
            return None
        base = enough(self._base, settings.bin_calls)
        cand = enough(self._cand, settings.bin_calls) if base else None
        if base and cand:
            span = self._span
            self._discard()
            return span, self._close(span, base, cand)
        if width == widest:
            self._discard()
        else:
            self._step += 1
        return None

    def _close(self, span: int, base: dict[Unit, float], cand: dict[Unit, float]) -> float:
        middle = math.fsum(base.values()) / len(base)
        for totals, levels in ((self.baseline, base), (self.candidate, cand)):
            for unit, level in levels.items():
                total = totals.get(unit)
                if total is None:
                    total = totals[unit] = Total()
                total.difference += span * (level - middle)
                total.level += span * level
                total.minutes += span
        return math.fsum(cand.values()) / len(cand) - middle

    def _discard(self) -> None:
        self._base.clear()
        self._cand.clear()
        self._span = self._step = 0


def at_once(rows: list[InstanceMinute], metric: Ratio, least: int) -> dict[Unit, float] | None:
    """The log level per instance when every one has enough samples in this minute alone and one row; else None."""
    levels: dict[Unit, float] = {}
    value_of, samples_of, sign = metric.value, metric.samples, metric.worse
    for row in rows:
        value = value_of(row)
        if value is None or samples_of(row) < least or not 0.0 < value < math.inf or row.unit in levels:
            return None
        levels[row.unit] = sign * math.log(value)
    return levels


def fill(pending: Pending, rows: list[InstanceMinute], metric: Ratio) -> None:
    """Adds the logs of usable values, weighted by their samples, to each instance's bin."""
    value_of, samples_of, sign = metric.value, metric.samples, metric.worse
    for row in rows:
        value = value_of(row)
        samples = samples_of(row)
        if value is None or samples <= 0 or not 0.0 < value < math.inf:
            continue
        entry = pending.get(row.unit)
        if entry is None:
            entry = pending[row.unit] = ([], [])
        entry[0].append(sign * samples * math.log(value))
        entry[1].append(samples)


def enough(pending: Pending, least: int) -> dict[Unit, float] | None:
    """The log level per instance with at least `least` samples; None while under half of the instances have them."""
    levels = {}
    for unit, (terms, samples) in pending.items():
        count = sum(samples)
        if count >= least:
            levels[unit] = math.fsum(terms) / count
    return levels if levels and 2 * len(levels) >= len(pending) else None


class RatioSeries:
    """One metric of one region, compared since the deployment."""

    def __init__(self, metric: Ratio, settings: Settings) -> None:
        self.metric = metric
        self.cells: dict[CellKey, Cell] = {}
        self.matched_minutes = 0
        self.recent: deque[tuple[int, float]] = deque()
        self._settings = settings
        self._strata: dict[Stratum, list[Cell]] = {}
        self._effect = math.log1p(metric.smallest_effect)
        self._groups: list[Group] = []
        self._ages: list[int] = []
        self._estimate: Estimate | None = None
        self._covered = -1
        self._slope = 0.0
        self._recent_minutes = 0

    def add(self, minute: int, rows: Mapping[CellKey, CellRows]) -> int:
        """Takes a minute; answers with how many minutes of matched data it brought."""
        longest = 0
        weights: list[float] = []
        changes: list[float] = []
        if any(cell_rows.gone for cell_rows in rows.values()):
            self._slope = slope_of(place for cell in self.cells.values() for place in cell.places.values())
        for key, cell_rows in rows.items():
            cell = self._cell(key, cell_rows)
            if cell_rows.gone:
                closed = match(cell.places, minute, cell_rows, self.metric, self._slope, self._settings)
            else:
                closed = cell.add(minute, cell_rows, self.metric, self._settings)
                if cell_rows.loads:
                    remember(cell.places, minute, cell_rows, self.metric)
            if closed is not None:
                span, change = closed
                longest = max(longest, span)
                weights.append(float(cell.traffic.baseline * span))
                changes.append(weights[-1] * change)
        if longest:
            longest = min(longest, minute - self._covered)
            self._covered = minute
            self._remember(longest, math.fsum(changes) / math.fsum(weights))
            self._group()
        return longest

    def remember(self, minute: int, rows: Mapping[CellKey, CellRows]) -> None:
        """Takes a minute of the baseline before the deployment."""
        for key, cell_rows in rows.items():
            remember(self._cell(key, cell_rows).places, minute, cell_rows, self.metric)

    def _cell(self, key: CellKey, rows: CellRows) -> Cell:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(rows.traffic)
            self._strata.setdefault(key[0], []).append(cell)
        return cell

    @property
    def one_sided(self) -> bool:
        """Whether a version, or both, called without reporting this metric."""
        return any(cell.one_sided for cell in self.cells.values())

    def _remember(self, minutes: int, change: float) -> None:
        self.matched_minutes += minutes
        self.recent.append((minutes, minutes * change))
        self._recent_minutes += minutes
        while self._recent_minutes - self.recent[0][0] >= self._settings.recent_minutes:
            self._recent_minutes -= self.recent.popleft()[0]

    def _group(self) -> None:
        groups: list[Group] = []
        ages: list[int] = []
        least = self._settings.instance_minutes
        for stratum, cells in self._strata.items():
            cand = means([(cell.traffic.baseline, cell.candidate) for cell in cells], least, ages)
            base = means([(cell.traffic.baseline, cell.baseline) for cell in cells], least, None) if cand else None
            if base and cand:
                groups.append(group(stratum, base, cand))
            past = [(cell.traffic.baseline, self.past_of(cell)) for cell in cells if cell.places]
            hosts = means(past, least, ages) if past else None
            if hosts:
                groups.append(same_hosts(stratum, hosts))
        self._groups, self._ages, self._estimate = groups, ages, None

    def past_of(self, cell: Cell) -> dict[Unit, Total]:
        """What was compared with the past of the same hosts in a cell."""
        return totals_of(cell.places, self._slope)

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How the change was found, the way that tells most first."""
        weights: dict[Layout, float] = {}
        for part in self._groups:
            aligned = any(place.aligned for cell in self._strata[part.stratum] for place in cell.places.values() if place.minutes)
            how: Layout = "side_by_side" if not part.same_hosts else "day_before" if aligned else "past_by_load"
            weights[how] = weights.get(how, 0.0) + 1.0 / part.k
        return tuple(sorted(weights, key=lambda how: (-weights[how], how)))

    @property
    def estimate(self) -> Estimate | None:
        """The change with its error; worked out when somebody asks, for most minutes show no change at all."""
        if self._estimate is None and self._groups:
            prior = prior_at(self.metric.prior_variance, sum(self._ages) / len(self._ages))
            self._estimate = combine(self._groups, prior, self._settings.prior_df, self.metric.day_variance)
        return self._estimate

    def recent_change(self) -> float | None:
        """The mean change over the last half hour of data; None before there is as much."""
        if self._recent_minutes < self._settings.recent_minutes:
            return None
        return math.fsum([entry[1] for entry in self.recent]) / self._recent_minutes

    def read(self, comparisons: int, closely: bool) -> Reading:
        """What the series says now; `closely` asks for the most recent data even where nothing is regressed."""
        if not self._groups:
            return CALM
        large = pooled(self._groups) >= self._effect
        if not large and not closely:
            return CALM
        leaning = large and self._exceeds(self._settings.watch_alpha, comparisons)
        recent = self.recent_change()
        return Reading(
            regressed=leaning and self._exceeds(self._settings.roll_back_alpha, comparisons),
            leaning=leaning,
            recovered=recent is not None and recent < self._effect / 2,
            relapsed=recent is not None and recent >= self._effect,
        )

    def _exceeds(self, alpha: float, comparisons: int) -> bool:
        estimate = self.estimate
        return estimate is not None and estimate.delta > estimate.margin(alpha / (2 * comparisons * self.metric.doublings))

    def bound(self) -> float | None:
        """The worst change that the data leaves possible, on the log scale."""
        estimate = self.estimate
        return estimate.delta + estimate.margin(self._settings.healthy_alpha) if estimate else None

    def tolerable(self) -> bool:
        """Whether that bound lies below the tolerated change."""
        bound = self.bound()
        return bound is not None and bound < math.log1p(self.metric.tolerated)


def means(cells: list[tuple[int, dict[Unit, Total]]], least: int, ages: list[int] | None) -> dict[Unit, float]:
    """The mean difference per instance with at least `least` matched minutes, buckets weighted by the baseline's traffic."""
    if len(cells) == 1:
        found = {unit: total.difference / total.minutes for unit, total in cells[0][1].items() if total.minutes >= least}
        if ages is not None:
            ages += [total.minutes for total in cells[0][1].values() if total.minutes >= least]
        return found
    sums: dict[Unit, list[float]] = {}
    for weight, totals in cells:
        for unit, total in totals.items():
            entry = sums.get(unit)
            if entry is None:
                entry = sums[unit] = [0.0, 0.0, 0.0]
            entry[0] += weight * total.difference
            entry[1] += weight * total.minutes
            if total.minutes > entry[2]:
                entry[2] = total.minutes
    if ages is not None:
        ages += [int(entry[2]) for entry in sums.values() if entry[2] >= least]
    return {unit: entry[0] / entry[1] for unit, entry in sums.items() if entry[2] >= least}
