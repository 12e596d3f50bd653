"""Region state: the running state of one outermost region, with its traffic by cell and one series
per metric."""

from __future__ import annotations

from typing import NamedTuple

from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.before_after import Hosts, NoPastReason, compute_loads
from dashboard.regressions.judge.call_metrics import wall_middle
from dashboard.regressions.judge.day_history import DayHistory
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import CellKey, CellRows, InstanceMinute, Stratum, Traffic
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import read_level, require_lasting
from dashboard.regressions.judge.reading_state import Reading
from dashboard.regressions.judge.self_drift import CusumDetector, SelfDrift
from dashboard.regressions.judge.settings import AnyMetric, RatioMetric, Settings
from dashboard.regressions.judge.verdict_policy import JudgedTrack, Track

Series = RatioSeries | AffectedSeries


def series_for(
    metric: AnyMetric, settings: Settings, region: str = "", days: DayHistory | None = None
) -> Series:
    """The series for a metric of a region."""
    if not isinstance(metric, RatioMetric):
        return AffectedSeries(metric, settings)
    shifts = days.read_shifts(region, metric, settings.bin_calls) if days else None
    return RatioSeries(metric, settings, shifts)


class Calls(NamedTuple):
    """The candidate's steady calls: all, those without a baseline in their cell, those after its
    end, and of these the ones on hosts without a past."""

    total: int
    alone: int
    after: int
    away: int


class Region:
    """State of one region of a candidate and its baseline."""

    def __init__(self, name: str, settings: Settings, days: DayHistory | None = None) -> None:
        self.name = name
        self.traffic: dict[CellKey, Traffic] = {}
        self.entries = [
            (series_for(metric, settings, name, days), Track(metric)) for metric in settings.metrics
        ]
        self.drifts = [
            CusumDetector(metric, settings)
            for metric in settings.metrics
            if isinstance(metric, RatioMetric) and metric.leads
        ]
        self.gpu_sampled = 0
        self.gpu_longer = 0
        self.reports = {""}
        self.stalls = False
        """True if any call stalled."""
        self.rows: dict[CellKey, CellRows] = {}
        self.closed: dict[CellKey, CellRows] = {}
        """The rows of the last closed minute."""
        self.hosts = Hosts(settings)
        self.away: dict[tuple[Stratum, str, NoPastReason], int] = {}
        self.past_calls = 0
        self.wants_past = False
        self.last_called: int | None = None
        self.quiet = False
        self.ended: int | None = None
        """The last minute with the candidate's calls, if a ROLL BACK rested on the region and its
        calls have ended."""
        self._fresh = False
        self._settings = settings

    def collect(self, row: InstanceMinute, steady: bool = True) -> None:
        """Adds a row of the current minute to its cell."""
        key = (row.stratum, row.bucket)
        cell = self.rows.get(key)
        if cell is None:
            traffic = self.traffic.get(key)
            if traffic is None:
                traffic = self.traffic[key] = Traffic()
                self._fresh = True
            cell = self.rows[key] = CellRows(traffic)
        if not steady:
            cell.young.append(row)
            return
        if row.arm == "candidate":
            cell.candidate.append(row)
            cell.traffic.candidate += row.calls
        else:
            cell.baseline.append(row)
            cell.traffic.baseline += row.calls
        if row.stalled is not None:
            self.reports.add("stalled")
            self.stalls |= row.stalled > 0
        if row.items is not None:
            self.reports.add("items")
        if row.gpu_p50 is not None and row.gpu_count >= self._settings.gpu_samples:
            self.reports.add("gpu")
            self.gpu_sampled += 1
            middle = wall_middle(row)
            self.gpu_longer += middle is None or row.gpu_p50 > middle

    def remember(self, minute: int, with_past: bool) -> None:
        """Ends a minute before the deployment. The minute becomes the past of its nodes."""
        rows = self._take(minute, with_past)
        for series, _ in self.entries:
            if series.metric.only_with in self.reports:
                series.remember(minute, rows)

    def close(
        self, minute: int, baseline_ago: int | None, budget: ErrorBudget, with_past: bool = False
    ) -> bool:
        """Ends the current minute: every series adds it and is read. Returns True if call time was
        compared.

        `baseline_ago` is the number of minutes since the baseline's last steady call in any region.
        """
        compared = False
        if any(cell.candidate for cell in self.rows.values()):
            self.last_called, self.quiet, self.ended = minute, False, None
        rows = self._take(minute, with_past)
        self._count_unmatched(minute, rows, baseline_ago, with_past)
        for series, track in self.entries:
            if series.metric.only_with not in self.reports:
                continue
            minutes = series.add(minute, rows)
            if minutes:
                reading = self._read(series, budget, closely=track.driving or track.released)
                track.step(minute, minutes, reading, series.matched_minutes, self._settings)
                compared |= series.metric.leads
        for drift in self.drifts:
            if drift.metric.only_with in self.reports:
                drift.add(self.name, minute, rows)
        return compared

    def _read(self, series: Series, budget: ErrorBudget, closely: bool) -> Reading:
        if not isinstance(series, RatioSeries):
            return series.read(budget, closely)
        reading = read_level(series, budget, closely)
        if self.stalls and series.metric.of_callers:
            reading = require_lasting(series, reading)
        return reading

    @property
    def is_compared(self) -> bool:
        """True if a metric of both versions was compared."""
        return any(series.matched_minutes for series, _ in self.entries)

    def drifted(self) -> list[SelfDrift]:
        """Drifts of the candidate from its own first day, by the metric that decides; empty for a
        region without current calls."""
        found = [
            (drift.metric, drift.drifted) for drift in self.drifts if drift.drifted is not None
        ]
        return [drifted for metric, drifted in found if not self.quiet and self.is_judged(metric)]

    def end_if_quiet(self, minute: int) -> None:
        """Ends the tracks of a region that the candidate has not called for long while it called
        others."""
        if (
            self.quiet
            or self.last_called is None
            or minute - self.last_called < self._settings.quiet_minutes
        ):
            return
        self.quiet = True
        if any(track.driving for _, track in self.entries):
            self.ended = self.last_called
        for _, track in self.entries:
            track.end()

    def _take(self, minute: int, with_past: bool) -> dict[CellKey, CellRows]:
        rows, self.rows = self.rows, {}
        if self._fresh:
            # The order of rows within a minute must not affect the order of sums.
            rows = dict(sorted(rows.items(), key=sort_key))
            self._fresh = False
        self.closed = rows
        self.hosts.seen(minute, rows)
        loads = compute_loads(rows) if with_past else {}
        for (stratum, _), cell in rows.items():
            cell.loads = loads
            if not cell.baseline and self.hosts.gone(stratum, minute):
                self.wants_past = True
                self.hosts.follow(stratum)
                cell.gone = with_past
                cell.alternates = self.hosts.alternates(stratum)
        return rows

    def _count_unmatched(
        self, minute: int, rows: dict[CellKey, CellRows], baseline_ago: int | None, with_past: bool
    ) -> None:
        reach = self._settings.bin_minutes[-1]
        # Two versions that alternate count as side by side.
        lately = baseline_ago is not None and baseline_ago < self._settings.bin_minutes[1]
        for (stratum, _), cell in rows.items():
            traffic = cell.traffic
            if cell.baseline:
                traffic.baseline_seen = minute
            elif cell.gone or (with_past and not lately):
                self._count_past(stratum, minute, cell)
            elif not lately:
                traffic.after += sum(row.calls for row in cell.candidate)
            elif baseline_ago == 0 and (
                traffic.baseline_seen is None or minute - traffic.baseline_seen >= reach
            ):
                traffic.alone += sum(row.calls for row in cell.candidate)

    def _count_past(self, stratum: Stratum, minute: int, cell: CellRows) -> None:
        for row in cell.candidate:
            why = self.hosts.find_no_past_reason(stratum, row.host, minute)
            if why == "after_the_baseline_ended" or (
                not cell.gone and why != "no_baseline_in_stratum"
            ):
                cell.traffic.after += row.calls
            elif not why:
                self.past_calls += row.calls
            else:
                cell.traffic.away += row.calls
                key = (stratum, row.host if why != "no_baseline_in_stratum" else "", why)
                self.away[key] = self.away.get(key, 0) + row.calls

    def calls(self) -> Calls:
        """The candidate's steady calls, and those without a counterpart."""
        cells = self.traffic.values()
        return Calls(
            sum(c.candidate for c in cells),
            sum(c.alone for c in cells),
            sum(c.after for c in cells),
            sum(c.away for c in cells),
        )

    def strata_with_baseline(self) -> set[Stratum]:
        """Strata in which the baseline made steady calls."""
        return {stratum for (stratum, _), traffic in self.traffic.items() if traffic.baseline}

    def is_judged(self, metric: AnyMetric) -> bool:
        """True if this metric decides: GPU time replaces wall time if calls return before the
        device is done. A muted metric never decides."""
        if metric.only_with == "stalled" and "stalled" not in self.reports:
            return False
        return decides(metric, self._stand_ins())

    def _stand_ins(self) -> dict[str, str]:
        """Replaced metrics with their replacements: the device takes longer than the call, and both
        arms were sampled."""
        if not self.gpu_sampled or 2 * self.gpu_longer <= self.gpu_sampled:
            return {}
        matched = {series.metric.name: series.matched_minutes for series, _ in self.entries}
        found = {}
        for series, _ in self.entries:
            metric, minutes = series.metric, series.matched_minutes
            if (
                isinstance(metric, RatioMetric)
                and metric.instead_of
                and minutes
                and 2 * minutes >= matched.get(metric.instead_of, 0)
            ):
                found[metric.instead_of] = metric.name
        return found

    def judged(self, minor: bool) -> list[JudgedTrack]:
        """The tracks that count for the verdict."""
        stand_ins = self._stand_ins()
        return [
            JudgedTrack(track, series, minor)
            for series, track in self.entries
            if decides(series.metric, stand_ins)
        ]


def decides(metric: AnyMetric, stand_ins: dict[str, str]) -> bool:
    """True if a metric counts for the verdict, given the metrics that replace others."""
    if metric.muted:
        return False
    if not isinstance(metric, RatioMetric):
        return True
    if metric.instead_of is not None:
        return stand_ins.get(metric.instead_of) == metric.name
    return metric.name not in stand_ins and not (metric.of_call_time and stand_ins)


def sort_key(item: tuple[CellKey, CellRows]) -> str:
    """A total order over cells, for any type of stratum."""
    return repr(item[0])
