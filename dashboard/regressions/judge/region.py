"""The running state of one outermost region: its traffic by cell, and one series per metric."""

from __future__ import annotations

from .affected import AffectedSeries
from .minutes import CellKey, CellRows, InstanceMinute, Stratum, Traffic
from .policy import Judged, Track
from .ratio import RatioSeries
from .settings import AnyMetric, Ratio, Settings

Series = RatioSeries | AffectedSeries


def series_for(metric: AnyMetric, settings: Settings) -> Series:
    """The state that a metric needs."""
    return RatioSeries(metric, settings) if isinstance(metric, Ratio) else AffectedSeries(metric, settings)


class Region:
    """What is known about one region of a candidate and its baseline."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.traffic: dict[CellKey, Traffic] = {}
        self.entries = [(series_for(metric, settings), Track(metric)) for metric in settings.metrics]
        self.gpu_sampled = 0
        self.gpu_longer = 0
        self.rows: dict[CellKey, CellRows] = {}
        self._fresh = False
        self._settings = settings

    def collect(self, row: InstanceMinute) -> None:
        """Puts a row of the current minute into its cell."""
        key = (row.stratum, row.bucket)
        cell = self.rows.get(key)
        if cell is None:
            traffic = self.traffic.get(key)
            if traffic is None:
                traffic = self.traffic[key] = Traffic()
                self._fresh = True
            cell = self.rows[key] = CellRows(traffic)
        if row.arm == "candidate":
            cell.candidate.append(row)
            cell.traffic.candidate += row.calls
        else:
            cell.baseline.append(row)
            cell.traffic.baseline += row.calls
        if row.gpu_p50 is not None and row.gpu_count >= self._settings.gpu_samples:
            self.gpu_sampled += 1
            self.gpu_longer += row.p50 is None or row.gpu_p50 > row.p50

    def close(self, minute: int, baseline_runs: bool, comparisons: int) -> None:
        """Ends the current minute: every series takes it and is read."""
        rows = self.rows
        if self._fresh:
            # The order of rows within a minute must not decide in which order sums are taken.
            rows = dict(sorted(rows.items(), key=repr_of_key))
            self._fresh = False
        self._count_unmatched(minute, rows, baseline_runs)
        for series, track in self.entries:
            if not self.gpu_sampled and isinstance(series.metric, Ratio) and series.metric.instead_of:
                continue
            minutes = series.add(minute, rows)
            if minutes:
                reading = series.read(comparisons, closely=track.driving or track.released)
                track.step(minute, minutes, reading, series.matched_minutes, self._settings)
        self.rows = {}

    def _count_unmatched(self, minute: int, rows: dict[CellKey, CellRows], baseline_runs: bool) -> None:
        reach = self._settings.bin_minutes[-1]
        for cell in rows.values():
            traffic = cell.traffic
            if cell.baseline:
                traffic.baseline_seen = minute
            elif not baseline_runs:
                traffic.after += sum(row.calls for row in cell.candidate)
            elif traffic.baseline_seen is None or minute - traffic.baseline_seen >= reach:
                traffic.alone += sum(row.calls for row in cell.candidate)

    def calls(self) -> tuple[int, int, int]:
        """The candidate's steady calls: all of them, those without a baseline in their cell, those after the baseline ended."""
        cells = self.traffic.values()
        return sum(c.candidate for c in cells), sum(c.alone for c in cells), sum(c.after for c in cells)

    def strata_with_baseline(self) -> set[Stratum]:
        """Strata in which the baseline made steady calls."""
        return {stratum for (stratum, _), traffic in self.traffic.items() if traffic.baseline}

    def is_judged(self, metric: AnyMetric) -> bool:
        """Whether this metric decides: GPU time instead of wall time where calls return before the device is done; no muted one does."""
        if metric.muted:
            return False
        stand_in = self._stand_in()
        if not isinstance(metric, Ratio):
            return True
        if metric.instead_of is not None:
            return stand_in is metric
        return stand_in is None or stand_in.instead_of != metric.name

    def _stand_in(self) -> Ratio | None:
        """The metric that stands in for another: the device takes longer than the call, and both arms were sampled."""
        if not self.gpu_sampled or 2 * self.gpu_longer <= self.gpu_sampled:
            return None
        matched = {series.metric.name: series.matched_minutes for series, _ in self.entries}
        for series, _ in self.entries:
            metric, minutes = series.metric, series.matched_minutes
            if not isinstance(metric, Ratio) or metric.instead_of is None:
                continue
            if minutes and 2 * minutes >= matched.get(metric.instead_of, 0):
                return metric
        return None

    def judged(self, minor: bool) -> list[Judged]:
        """The tracks that count for the verdict."""
        return [Judged(track, series, minor) for series, track in self.entries if self.is_judged(series.metric)]


def repr_of_key(item: tuple[CellKey, CellRows]) -> str:
    """A total order over cells, whatever their strata are made of."""
    return repr(item[0])
