"""Matched cell: one stratum and bucket of a compared level, with the open bin and sums per
instance.

Algorithm: stratified matching in adaptive time bins. A bin starts at one minute and widens through
`bin_minutes` until each arm has enough calls. A closed bin adds `span` times a difference to each
instance's sum: its log level minus the mean of the baseline's instances in the bin. Instances count
equally in that mean, regardless of their traffic.

Invariants:

- both arms are compared in the same bin, so a change over time cancels;
- bins end at multiples of their width;
- a bin needs an instance with at least `bin_calls` samples in each arm, and at least half of the
  instances of the arm must have them;
- versions that alternate must meet within the second bin width, else their calls are dropped;
- a bin that reaches the widest width without enough calls is dropped.

Source: the binning is this project's own.
"""

from __future__ import annotations

import math

from dashboard.regressions.judge.before_after import (
    HOST,
    Adjustment,
    HostHistories,
    add_past,
    compare_hosts,
    sum_levels,
)
from dashboard.regressions.judge.buckets import Bounds
from dashboard.regressions.judge.inputs import CellRows, InstanceMinute, Traffic
from dashboard.regressions.judge.node_past import NodePast
from dashboard.regressions.judge.pool_past import PoolPast
from dashboard.regressions.judge.pooled_estimate import MAX_UNITS, Total, Unit, evict_units
from dashboard.regressions.judge.serial_noise import SerialNoise
from dashboard.regressions.judge.settings import RatioMetric, Settings

Pending = dict[Unit, tuple[list[float], list[int]]]


class MatchedCell:
    """Sums per instance of one stratum and bucket, and the open bin."""

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
        "nodes",
        "past",
        "places",
        "pool",
        "shares_nodes",
        "traffic",
    )

    def __init__(self, traffic: Traffic, noise: SerialNoise) -> None:
        self.traffic = traffic
        self.bounds: Bounds | None = None
        self.both_called = self.baseline_reports = self.candidate_reports = False
        self.baseline: dict[Unit, Total] = {}
        self.candidate: dict[Unit, Total] = {}
        self.places: HostHistories = {}
        self.pool: PoolPast | None = None
        self.past = NodePast(noise)
        self.shares_nodes = False
        self.nodes: dict[Unit, str] = {}
        """The node of every instance with matched minutes; empty if not reported."""
        self._base: Pending = {}
        self._cand: Pending = {}
        self._opened = self._span = self._step = 0

    def add(
        self, minute: int, rows: CellRows, metric: RatioMetric, settings: Settings
    ) -> tuple[int, float] | None:
        """Adds a minute. Returns the bin's span and the candidate's mean difference if the minute
        closes a bin, else None."""
        self._locate(rows.baseline, self.baseline)
        self._locate(rows.candidate, self.candidate)
        if rows.baseline and rows.candidate and not (self._base and self._cand):
            # Most cells have enough calls in every minute, so nothing has to be merged.
            base = compute_minute_levels(rows.baseline, metric, settings.bin_calls)
            cand = (
                compute_minute_levels(rows.candidate, metric, settings.bin_calls) if base else None
            )
            if base and cand:
                self._discard()
                return 1, self._close(minute, 1, base, cand)
        return self._gather(minute, rows, metric, settings)

    def add_past(self, minute: int, rows: CellRows, metric: RatioMetric) -> None:
        """Adds a minute of the baseline to the past of its hosts, and of their pool."""
        levels = sum_levels(rows.baseline, metric, HOST)
        add_past(self.places, minute, levels, rows.loads)
        if self.pool is None:
            self.pool = PoolPast()
        self.pool.add(minute, levels, rows.loads)

    def compare_with_past(
        self,
        minute: int,
        rows: CellRows,
        metric: RatioMetric,
        adjust: Adjustment,
        settings: Settings,
    ) -> tuple[int, float] | None:
        """Compares the candidate's minute with the past of its hosts, or of the pool. Returns the
        longest span and the mean change of the bins that the minute closes."""
        known: list[InstanceMinute] = []
        unknown: list[InstanceMinute] = []
        for row in rows.candidate:
            place = self.places.get(row.host)
            is_known = place is not None and place.past.length >= settings.past_minutes
            (known if is_known else unknown).append(row)
        closed = compare_hosts(self.places, minute, known, rows.loads, metric, adjust, settings)
        if self.pool is not None and unknown and not rows.alternates:
            closed += self.pool.compare(minute, unknown, rows.loads, metric, adjust, settings)
        if not closed:
            return None
        return max(each.span for each in closed), math.fsum(each.change for each in closed) / len(
            closed
        )

    def _locate(self, rows: list[InstanceMinute], known: dict[Unit, Total]) -> None:
        """Records the nodes of instances. An instance keeps the node of its first minutes."""
        for row in rows:
            if row.unit in known:
                continue
            node = self.nodes.get(row.unit)
            if node is None:
                self.shares_nodes |= bool(row.host) and row.host in self.nodes.values()
                self.nodes[row.unit] = row.host
            elif node != row.host:
                # A name that moved, or that both versions use, has no past and no neighbours.
                self.nodes[row.unit] = ""
        if len(self.nodes) > 4 * MAX_UNITS:
            kept = self.baseline.keys() | self.candidate.keys()
            self.nodes = {unit: node for unit, node in self.nodes.items() if unit in kept}

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
            # Alternating versions meet within the second narrowest bin. Calls that wait longer
            # would be compared across times.
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
        """True if both arms had calls here and not both reported a value."""
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
    """The log level per instance, if every instance has one row with enough samples in this minute;
    else None."""
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
    """Adds the logs of usable values, weighted by their samples, to each instance's bin. Returns
    True if any was reported."""
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
    """The log level per instance with at least `least` samples; None while fewer than half of the
    instances have them."""
    levels = {}
    for unit, (terms, samples) in pending.items():
        count = sum(samples)
        if count >= least:
            levels[unit] = math.fsum(terms) / count
    return levels if levels and 2 * len(levels) >= len(pending) else None
