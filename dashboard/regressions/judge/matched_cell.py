"""One stratum and bucket of a compared level: bins that are being filled, and sums per instance."""

from __future__ import annotations

import math

from dashboard.regressions.judge.before_after import HostHistories
from dashboard.regressions.judge.buckets import Bounds
from dashboard.regressions.judge.inputs import CellRows, InstanceMinute, Traffic
from dashboard.regressions.judge.pooled_estimate import Total, Unit, evict_units
from dashboard.regressions.judge.settings import RatioMetric, Settings

Pending = dict[Unit, tuple[list[float], list[int]]]


class MatchedCell:
    """Sums per instance of one stratum and bucket, and the bin that is being filled."""

    __slots__ = (
        "_base",
        "_cand",
        "_opened",
        "_span",
        "_step",
        "baseline",
        "baseline_reports",
        "both_called",
        "bounds",
        "candidate",
        "candidate_reports",
        "places",
        "traffic",
    )

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.bounds: Bounds | None = None
        self.both_called = self.baseline_reports = self.candidate_reports = False
        self.baseline: dict[Unit, Total] = {}
        self.candidate: dict[Unit, Total] = {}
        self.places: HostHistories = {}
        self._base: Pending = {}
        self._cand: Pending = {}
        self._opened = self._span = self._step = 0

    def add(
        self, minute: int, rows: CellRows, metric: RatioMetric, settings: Settings
    ) -> tuple[int, float] | None:
        """Takes a minute; answers with the bin's span and the candidate's mean difference when it
        closes a bin."""
        if rows.baseline and rows.candidate and not (self._base and self._cand):
            # Most cells have calls enough in every minute: nothing to gather then.
            base = compute_minute_levels(rows.baseline, metric, settings.bin_calls)
            cand = (
                compute_minute_levels(rows.candidate, metric, settings.bin_calls) if base else None
            )
            if base and cand:
                self._discard()
                return 1, self._close(minute, 1, base, cand)
        return self._gather(minute, rows, metric, settings)

    def _gather(
        self, minute: int, rows: CellRows, metric: RatioMetric, settings: Settings
    ) -> tuple[int, float] | None:
        widest = settings.bin_minutes[-1]
        lonely = not (self._base and self._cand)
        if (
            self._span
            and minute // settings.bin_minutes[1] > self._opened // settings.bin_minutes[1]
            and lonely
        ):
            self._discard()
        if self._span and minute - self._opened >= widest:
            self._discard()
        if not self._span:
            self._opened = minute
        self._span += 1
        base_reports = fill(self._base, rows.baseline, metric)
        cand_reports = fill(self._cand, rows.candidate, metric)
        if rows.baseline and rows.candidate:
            self.both_called = True
            self.baseline_reports |= base_reports
            self.candidate_reports |= cand_reports
        if not self._base or not self._cand:
            # Versions that call in turn meet within the second narrowest bin; what waits longer for
            # the other would be of another time.
            if not (self._base or self._cand) or (minute + 1) % settings.bin_minutes[1] == 0:
                self._discard()
            return None
        width = settings.bin_minutes[self._step]
        if (minute + 1) % width:
            return None
        base = compute_bin_levels(self._base, settings.bin_calls)
        cand = compute_bin_levels(self._cand, settings.bin_calls) if base else None
        if base and cand:
            span = self._span
            self._discard()
            return span, self._close(minute, span, base, cand)
        if width == widest:
            self._discard()
        else:
            self._step += 1
        return None

    def _close(
        self, minute: int, span: int, base: dict[Unit, float], cand: dict[Unit, float]
    ) -> float:
        middle = math.fsum(base.values()) / len(base)
        for totals, levels in ((self.baseline, base), (self.candidate, cand)):
            for unit, level in levels.items():
                total = totals.get(unit)
                if total is None:
                    evict_units(totals, minute)
                    total = totals[unit] = Total()
                total.last = minute
                total.difference += span * (level - middle)
                total.level += span * level
                total.minutes += span
        return math.fsum(cand.values()) / len(cand) - middle

    @property
    def one_sided(self) -> bool:
        """Whether both arms called here and not both reported a value."""
        return (
            self.both_called
            and not self.baseline
            and not (self.baseline_reports and self.candidate_reports)
        )

    def _discard(self) -> None:
        self._base.clear()
        self._cand.clear()
        self._span = self._step = 0


def compute_minute_levels(
    rows: list[InstanceMinute], metric: RatioMetric, least: int
) -> dict[Unit, float] | None:
    """The log level per instance when every one has enough samples in this minute alone and one
    row; else None."""
    levels: dict[Unit, float] = {}
    value_of, samples_of, sign = metric.value, metric.samples, metric.worse
    for row in rows:
        value = value_of(row)
        if (
            value is None
            or samples_of(row) < least
            or not 0.0 < value < math.inf
            or row.unit in levels
        ):
            return None
        levels[row.unit] = sign * math.log(value)
    return levels


def fill(pending: Pending, rows: list[InstanceMinute], metric: RatioMetric) -> bool:
    """Adds the logs of usable values, weighted by their samples, to each instance's bin; answers
    whether any was reported."""
    reported = False
    value_of, samples_of, sign = metric.value, metric.samples, metric.worse
    for row in rows:
        value = value_of(row)
        if value is None or not 0.0 < value < math.inf:
            continue
        reported = True
        samples = samples_of(row)
        if samples <= 0:
            continue
        entry = pending.get(row.unit)
        if entry is None:
            entry = pending[row.unit] = ([], [])
        entry[0].append(sign * samples * math.log(value))
        entry[1].append(samples)
    return reported


def compute_bin_levels(pending: Pending, least: int) -> dict[Unit, float] | None:
    """The log level per instance with at least `least` samples; None while under half of the
    instances have them."""
    levels = {}
    for unit, (terms, samples) in pending.items():
        count = sum(samples)
        if count >= least:
            levels[unit] = math.fsum(terms) / count
    return levels if levels and 2 * len(levels) >= len(pending) else None
