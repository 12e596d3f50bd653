"""Recompiles of each frame over time, its cache entries and limit, and advice for its guards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.common import clock
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.compilations.compilations import VersionCompilation
from dashboard.fleet.selectors.findings.findings import FindingData
from dashboard.ui.charts.guard_advice import (
    count_observed_values,
    find_varying_input,
    list_guard_remedies,
)
from dashboard.ui.charts.time_axis import TimeTick, format_bin_start
from dashboard.ui.pages.compiles.recompile_headroom import Frame, FrameHeadroom
from dashboard.ui.pages.findings.remedies import find_remedy

MOST_BINS, MOST_ADVICE = 12, 3
_OBSERVED = re.compile(r"\s*\(actual [^)]*\)$")
"""The observed value at the end of a guard's text."""


@dataclass(frozen=True)
class FrameCell:
    """Recompiles of a frame in one bin; `at_limit` if the frame reached its limit in it."""

    count: int
    at_limit: bool


@dataclass(frozen=True)
class FrameRow:
    """One frame: its recompiles by bin, and its headroom."""

    headroom: FrameHeadroom
    cells: list[FrameCell]
    total: int


@dataclass(frozen=True)
class GuardAdvice:
    """The guard that fails most often in a frame, its observed values, and a fix; `finding` is the
    finding of this guard, if any."""

    frame: str
    guard: str
    values: str
    code: str
    text: str
    finding: int | None


@dataclass(frozen=True)
class FrameMatrix:
    """All frames; `limits` are the limits in force of the frames that reached them."""

    heads: list[TimeTick]
    rows: list[FrameRow]
    limits: list[int]

    @property
    def note(self) -> str:
        """The meaning of the frame around a cell; empty if no frame reached its limit."""
        if not any(cell.at_limit for row in self.rows for cell in row.cells):
            return ""
        limit = f" of {self.limits[0]}" if len(self.limits) == 1 else ""
        return f"framed: the frame reached its limit{limit}"


def build_frame_matrix(
    headroom: Iterable[FrameHeadroom], events: Iterable[VersionCompilation], window: TimeBins
) -> FrameMatrix:
    """One row per frame: frames whose agents reported the limit first, then those with the most
    recompiles."""
    counts: dict[Frame, Counter[int]] = {}
    reached: dict[Frame, set[int]] = {}
    for event in events:
        place, key = window.bin_of(find_minute(event)), _key(event)
        if place is None:
            continue
        if event.kind == "recompile":
            counts.setdefault(key, Counter())[place] += 1
        if is_at_limit(event):
            reached.setdefault(key, set()).add(place)
    rows = []
    for room in headroom:
        counted = counts.get(room.key, Counter())
        full = reached.get(room.key) or ({max(counted)} if counted else set())
        full = full if room.latched else set()
        cells = [FrameCell(counted[place], place in full) for place in range(window.count)]
        rows.append(FrameRow(room, cells, sum(counted.values())))
    return FrameMatrix(
        heads=[format_bin_start(minute, window.step) for minute in window.starts()],
        rows=sorted(rows, key=lambda row: (not row.headroom.latched, -row.total)),
        limits=sorted(
            {
                row.headroom.entries.limit
                for row in rows
                if row.headroom.entries.limit is not None
                and any(cell.at_limit for cell in row.cells)
            }
        ),
    )


def find_limit_times(
    headroom: Iterable[FrameHeadroom], events: Sequence[VersionCompilation]
) -> list[tuple[int, str]]:
    """The minute in which each frame reached its limit, with the name of the frame: the first
    compilation that filled the last entry, else the last recompile. Only an agent reports that
    calls were refused afterwards."""
    found: dict[Frame, int] = {}
    last: dict[Frame, int] = {}
    for event in events:
        if is_at_limit(event):
            found.setdefault(_key(event), find_minute(event))
        if event.kind == "recompile":
            last[_key(event)] = find_minute(event)
    times = []
    for room in headroom:
        minute = found.get(room.key) or last.get(room.key)
        if minute is not None and room.latched:
            times.append((minute, room.frame))
    return sorted(times)


def list_guard_advice(
    rows: Iterable[FrameRow],
    events: Iterable[VersionCompilation],
    findings: Iterable[FindingData],
) -> list[GuardAdvice]:
    """Advice for the frames with the most recompiles."""
    reasons: dict[Frame, list[str]] = {}
    for event in events:
        if event.kind == "recompile" and event.reason:
            reasons.setdefault(_key(event), []).append(event.reason)
    known = {one.text: one.id for one in findings if one.kind == "guard"}
    chosen = [row for row in rows if row.total and row.headroom.key in reasons][:MOST_ADVICE]
    return [_advice(row.headroom, reasons[row.headroom.key], known) for row in chosen]


def _advice(room: FrameHeadroom, reasons: list[str], known: dict[str, int]) -> GuardAdvice:
    lines = [next(iter(reason.strip().splitlines()), "") for reason in reasons]
    guard = Counter(lines).most_common(1)[0][0]
    same = [line for line in lines if line.partition("==")[0] == guard.partition("==")[0]]
    values, varying = count_observed_values(same), find_varying_input(guard)
    labels = [bucket.label for bucket in values.buckets]
    ways = list_guard_remedies(varying, values)
    return GuardAdvice(
        frame=room.frame,
        guard=_OBSERVED.sub("", guard),
        values=", ".join(labels[:6]) + (" and more" if len(labels) > 6 else ""),
        code=next((way.code for way in ways if way.code), ""),
        text=find_remedy("guard", guard),
        finding=next((id for text, id in known.items() if text and text in guard), None)
        or next((id for text, id in known.items() if guard and guard in text), None),
    )


def is_at_limit(event: VersionCompilation) -> bool:
    """Whether the code object held as many entries as it may afterwards."""
    return (
        event.entries is not None
        and event.entry_limit is not None
        and event.entries >= event.entry_limit
    )


def find_minute(event: VersionCompilation) -> int:
    """The minute in which a compilation ended."""
    return clock.minute_of(event.at.timestamp())


def _key(event: VersionCompilation) -> Frame:
    return event.frame, event.file, event.line
