"""Sequence ranges: the durable sequence numbers of a sender as sorted ranges, normally one. Pure
arithmetic that counts every number once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from compilewatch.wire.messages import SeqRange

from dashboard.ingest.recent_digests import ReportDigest, contradicts

MAX_RANGES = 64
MAX_SEQ = 1 << 53

NEW = "new"
COVERED = "covered"
PARTIAL_OVERLAP = "partial_overlap"
GAP_CLOSED = "gap_closed"
RANGE_CONFLICT = "range_conflict"


@dataclass(slots=True)
class Coverage:
    """The acknowledged ranges, the gaps between them that were given up, the count of numbers in
    those gaps, and the last reports."""

    ranges: list[SeqRange] = field(default_factory=list)
    closed: list[SeqRange] = field(default_factory=list)
    missing: int = 0
    recent: list[ReportDigest] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        ranges: Iterable[Iterable[int]],
        closed: Iterable[Iterable[int]],
        missing: int,
        recent: list[ReportDigest] | None = None,
    ) -> Coverage:
        """The coverage from its stored form."""
        return cls(
            [_to_range(pair) for pair in ranges],
            [_to_range(pair) for pair in closed],
            missing,
            recent or [],
        )

    @property
    def next_seq(self) -> int:
        """The number after the highest acknowledged one."""
        return self.ranges[-1][1] + 1 if self.ranges else 1

    @property
    def held(self) -> list[SeqRange] | None:
        """The ranges if numbers below the highest one are missing, else None."""
        return list(self.ranges) if self.open_gaps else None

    @property
    def open_gaps(self) -> int:
        """Count of numbers below the highest one that are missing and may still arrive."""
        held = sum(last - first + 1 for first, last in self.ranges)
        return self.next_seq - 1 - held

    def place(self, seq: SeqRange) -> str:
        """Classifies a range: NEW, COVERED, PARTIAL_OVERLAP or GAP_CLOSED."""
        first, last = seq
        gap = _find_overlapping(self.closed, seq)
        if gap is not None:
            return GAP_CLOSED if gap[0] <= first and last <= gap[1] else PARTIAL_OVERLAP
        held = _find_overlapping(self.ranges, seq)
        if held is None:
            return NEW
        return COVERED if held[0] <= first and last <= held[1] else PARTIAL_OVERLAP

    def take(self, report: ReportDigest) -> str:
        """Classifies a report as `place` does, or as RANGE_CONFLICT if another report is stored
        under its range. Adds a NEW report."""
        seq = (report.last - report.before, report.last)
        place = self.place(seq)
        if place == NEW:
            self.add(seq)
            self.recent.append(report)
        elif place == COVERED and contradicts(self.recent, report):
            return RANGE_CONFLICT
        return place

    def add(self, seq: SeqRange) -> None:
        """Adds a NEW range and joins it with its neighbours. Beyond 64 ranges, the oldest gap is
        given up."""
        at = bisect_right(self.ranges, seq)
        first, last = seq
        if at < len(self.ranges) and self.ranges[at][0] == last + 1:
            last = self.ranges.pop(at)[1]
        if at and self.ranges[at - 1][1] == first - 1:
            at -= 1
            first = self.ranges.pop(at)[0]
        self.ranges.insert(at, (first, last))
        if len(self.ranges) > MAX_RANGES:
            self._close_oldest_gap()

    def _close_oldest_gap(self) -> None:
        (first, last), (after, end) = self.ranges[:2]
        self.ranges[:2] = [(first, end)]
        self.missing += after - last - 1
        self.closed.append((last + 1, after - 1))
        self.closed.sort()
        if len(self.closed) > MAX_RANGES:
            # Numbers between the two oldest are older than anything that an agent still keeps.
            self.closed[:2] = [(self.closed[0][0], self.closed[1][1])]


def _find_overlapping(ranges: list[SeqRange], seq: SeqRange) -> SeqRange | None:
    """The last of the sorted ranges that shares a number with `seq`."""
    at = bisect_right(ranges, (seq[1], MAX_SEQ + 1))
    if at and ranges[at - 1][1] >= seq[0]:
        return ranges[at - 1]
    return None


def _to_range(pair: Iterable[int]) -> SeqRange:
    first, last = pair
    return first, last
