"""Compilations over time: bars stacked by kind, with labelled markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.ui.charts.time_axis import TimeTick, build_time_ticks
from dashboard.vocabulary import numbers

TOP, BOTTOM, HEIGHT = 18.0, 116.0, 136
GAP = 0.16
MOST_BARS, MOST_MARKS = 120, 4
CLOSE = 22.0
"""Distance in percent at which the labels of two markers would overlap."""


@dataclass(frozen=True)
class CompileKind:
    """A kind of compilation: key, singular and plural, and CSS class."""

    key: str
    one: str
    many: str
    css: str


KINDS = (
    CompileKind("first", "first compile", "first compiles", "f1"),
    CompileKind("recompile", "recompile", "recompiles", "st-1"),
    CompileKind("backward", "backward", "backward", "f4"),
    CompileKind("autotune", "autotuning", "autotuning", "f5"),
    CompileKind("empty", "empty frame", "empty frames", "f6"),
)
_KEYS = frozenset(kind.key for kind in KINDS)


@dataclass(frozen=True)
class BarPart:
    """One kind within a bar."""

    y: float
    height: float
    css: str


@dataclass(frozen=True)
class Bar:
    """The compilations of one bin; position and width in percent."""

    x: float
    width: float
    parts: list[BarPart]
    title: str


@dataclass(frozen=True)
class BarMark:
    """A labelled time; `flipped` puts the label before the line, `y` is the line of the label."""

    x: float
    text: str
    at: datetime
    flipped: bool
    y: float


@dataclass(frozen=True)
class LegendEntry:
    """One kind with its count."""

    text: str
    css: str


@dataclass(frozen=True)
class CompilationBars:
    """The drawing; `rest` counts markers beyond the limit."""

    bars: list[Bar]
    levels: list[tuple[float, str]]
    ticks: list[TimeTick]
    marks: list[BarMark]
    rest: int
    legend: list[LegendEntry]
    unit: str
    height: int = HEIGHT

    @property
    def counts(self) -> str:
        """The counts per kind as text."""
        return ", ".join(entry.text for entry in self.legend)

    @property
    def bottom(self) -> float:
        """The zero line."""
        return BOTTOM


def build_compilation_bars(
    compilations: Iterable[tuple[int, str]],
    window: TimeBins,
    marks: Sequence[tuple[int, str]] = (),
) -> CompilationBars:
    """Draws compilations, given as minute and kind, and markers, given as minute and text."""
    counts: dict[int, Counter[str]] = {}
    for minute, kind in compilations:
        place = window.bin_of(minute)
        if place is not None:
            counts.setdefault(place, Counter())[find_kind(kind)] += 1
    most, step = _scale(max((sum(one.values()) for one in counts.values()), default=1))
    total: Counter[str] = sum(counts.values(), Counter())
    drawn = [mark for mark in sorted(marks) if window.first <= mark[0] <= window.last]
    return CompilationBars(
        bars=[_bar(place, counts[place], window, most) for place in sorted(counts)],
        levels=[
            (round(_y(value, most), 1), numbers.number(value)) for value in range(0, most + 1, step)
        ],
        ticks=build_time_ticks(window.first, window.last),
        marks=_marks(drawn[:MOST_MARKS], window),
        rest=max(0, len(drawn) - MOST_MARKS),
        legend=[
            LegendEntry(f"{total[kind.key]:,} {_noun(kind, total[kind.key])}", kind.css)
            for kind in KINDS
            if total[kind.key]
        ],
        unit="minute" if window.step == 1 else numbers.format_minutes(window.step),
    )


def find_kind(kind: str) -> str:
    """The drawn kind; unknown kinds of newer agents count as first compilations."""
    return kind if kind in _KEYS else "first"


def format_kind_counts(kinds: Iterable[str]) -> str:
    """The counts per kind as text, such as "9 first compiles, 21 recompiles"."""
    total = Counter(find_kind(kind) for kind in kinds)
    return ", ".join(
        f"{total[kind.key]:,} {_noun(kind, total[kind.key])}" for kind in KINDS if total[kind.key]
    )


def _noun(kind: CompileKind, count: int) -> str:
    return kind.one if count == 1 else kind.many


def _scale(most: int) -> tuple[int, int]:
    """The top of the axis and the step of its levels."""
    step = next(
        (
            factor * 10**power
            for power in range(9)
            for factor in (1, 2, 5)
            if most <= 4 * factor * 10**power
        ),
        most,
    )
    return -(-most // step) * step, step


def _y(value: float, most: int) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / most


def _bar(place: int, counts: Counter[str], window: TimeBins, most: int) -> Bar:
    wide = 100 / window.count
    parts, below = [], 0
    for kind in KINDS:
        if count := counts[kind.key]:
            top = _y(below + count, most)
            parts.append(BarPart(round(top, 1), round(_y(below, most) - top, 1), kind.css))
            below += count
    at = datetime.fromtimestamp(60 * (window.first + place * window.step), UTC)
    said = ", ".join(
        f"{counts[kind.key]} {_noun(kind, counts[kind.key])}" for kind in KINDS if counts[kind.key]
    )
    return Bar(
        x=round(wide * (place + GAP / 2), 2),
        width=round(wide * (1 - GAP), 2),
        parts=parts,
        title=f"{at.day} {at:%b} {at:%H:%M} UTC: {said}",
    )


def _marks(marks: Sequence[tuple[int, str]], window: TimeBins) -> list[BarMark]:
    found: list[BarMark] = []
    for minute, text in marks:
        x = round(100 * (minute - window.first) / (window.last - window.first), 2)
        level = sum(abs(one.x - x) < CLOSE for one in found)
        found.append(
            BarMark(x, text, datetime.fromtimestamp(60 * minute, UTC), x > 60, 15.0 + 13 * level)
        )
    return found
