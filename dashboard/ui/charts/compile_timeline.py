"""Timeline of compilations since process start, on a logarithmic axis because most compilations
happen in the first minutes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.vocabulary import numbers

LANES = (
    ("first", "First"),
    ("backward", "Backward"),
    ("autotune", "Autotuning"),
    ("recompile", "Recompile"),
    ("empty", "Empty frame"),
)
LANE_KINDS = frozenset(kind for kind, _ in LANES)
TICKS = (
    1,
    3,
    10,
    30,
    60,
    180,
    600,
    1800,
    3600,
    10800,
    43200,
    86400,
    3 * 86400,
    10 * 86400,
    30 * 86400,
)
LEFT, RIGHT, TOP, LANE = 150.0, 1160.0, 22, 34
SPREAD = 7
MAX_MARKS = 700


@dataclass(frozen=True)
class TimelineCompilation:
    """One compilation: seconds since process start, and duration. `row` separates processes within
    a lane."""

    kind: str
    end: float
    seconds: float
    in_request: bool
    failed: bool
    label: str
    row: int


@dataclass(frozen=True)
class TimelineMark:
    """A bar, with a diamond if the compilation blocked a request."""

    x: float
    y: float
    width: float
    in_request: bool
    failed: bool
    title: str

    @property
    def end(self) -> float:
        """The right end of the bar."""
        return round(self.x + self.width, 1)


@dataclass(frozen=True)
class Lane:
    """One kind of compilation."""

    name: str
    y: int
    count: str


@dataclass(frozen=True)
class CompileTimeline:
    """The drawing; `left_out` counts marks that only the table has."""

    lanes: list[Lane]
    marks: list[TimelineMark]
    ticks: list[tuple[float, str]]
    served: float | None
    height: int
    left_out: int

    @property
    def bottom(self) -> int:
        """The bottom of the grid."""
        return self.height - 22


def build_compile_timeline(
    compilations: Sequence[TimelineCompilation], *, served: float | None
) -> CompileTimeline:
    """Draws the compilations, only the longest if there are too many. `served` is the time when the
    median process ran compiled."""
    kinds = {find_lane(one) for one in compilations}
    lanes = {
        kind: (TOP + LANE * place, name)
        for place, (kind, name) in enumerate(lane for lane in LANES if lane[0] in kinds)
    }
    shown = sorted(compilations, key=lambda one: (not one.in_request, -one.seconds))[:MAX_MARKS]
    times = [
        max(0.5, time) for one in compilations for time in (one.end - one.seconds, one.end)
    ] + ([served] if served else [])
    first, last = (min(times) * 0.9, max(times) * 1.1) if times else (1.0, 10.0)
    scale = (RIGHT - LEFT) / (math.log(last) - math.log(first))

    def place(seconds: float) -> float:
        return round(LEFT + (math.log(max(seconds, first)) - math.log(first)) * scale, 1)

    marks = []
    for one in sorted(shown, key=lambda one: one.end):
        y = lanes[find_lane(one)][0] + 5 + 3 * (one.row % SPREAD)
        start, end = place(max(0.5, one.end - one.seconds)), place(max(0.5, one.end))
        marks.append(
            TimelineMark(
                start, y, round(max(2.0, end - start), 1), one.in_request, one.failed, _title(one)
            )
        )
    return CompileTimeline(
        lanes=[
            Lane(name, y, numbers.number(sum(find_lane(one) == kind for one in compilations)))
            for kind, (y, name) in lanes.items()
        ],
        marks=marks,
        ticks=[
            (place(at), numbers.format_coarse_duration(at) if at >= 60 else numbers.duration(at))
            for at in TICKS
            if first <= at <= last
        ],
        served=place(served) if served else None,
        height=TOP + LANE * len(lanes) + 30,
        left_out=len(compilations) - len(marks),
    )


def find_lane(one: TimelineCompilation) -> str:
    """The lane of a compilation; unknown kinds use the lane of first compilations."""
    return one.kind if one.kind in LANE_KINDS else "first"


def format_counts(compilations: Iterable[TimelineCompilation]) -> str:
    """The counts per kind as text."""
    kinds = [find_lane(one) for one in compilations]
    return ", ".join(f"{kinds.count(kind)} {name.lower()}" for kind, name in LANES if kind in kinds)


def _title(one: TimelineCompilation) -> str:
    told = (
        f"{one.label}: {one.kind}, {numbers.duration(one.seconds)}, "
        f"{numbers.duration(max(0.0, one.end))} after process start"
    )
    return (
        told
        + (", blocked a request" if one.in_request else "")
        + (", failed" if one.failed else "")
    )
