"""Cold starts of a version: all starts on one scale, one start phase by phase, and the medians of
phases compared with the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.fleet.selectors.instances.instances import ColdStartData
from dashboard.ui.charts.waterfall import (
    UNACCOUNTED,
    Step,
    Waterfall,
    WaterfallBar,
    build_steps,
    build_waterfall,
    sum_by_name,
)
from dashboard.vocabulary import numbers

MOST_IN_JSON = 16
ENDS = {"first call": "until calls ran without compiling", "ready": "until ready()"}
NEAR = 0.85
ENOUGH = 3


@dataclass(frozen=True)
class StartRow:
    """One start as a stacked bar; positions are percentages of slightly more than the longest start
    or the budget."""

    process: ProcessStart
    total: float
    parts: list[tuple[float, float, str]]
    end: float
    over: bool
    chosen: bool
    told: bool
    """Whether the agent reported the stages; otherwise reports only yield two stages."""

    @property
    def text(self) -> str:
        """The duration of the whole start."""
        return numbers.duration(self.total)


@dataclass(frozen=True)
class PhaseRow:
    """One phase: medians of both sides, and whether the starts of the two sides are separated."""

    name: str
    own: str
    base: str
    change: str
    apart: str
    seconds: float
    base_seconds: float | None


@dataclass(frozen=True)
class WaterfallRow:
    """One phase: its bar in the drawn start, None if this start lacks it, and its medians, None if
    no agent reported phases."""

    name: str
    bar: WaterfallBar | None
    median: PhaseRow | None

    @property
    def pair(self) -> str:
        """The medians of both sides, or of this version alone."""
        if self.median is None:
            return ""
        if not self.median.base:
            return self.median.own
        return f"{self.median.base} → {self.median.own}"


@dataclass(frozen=True)
class StartsCard:
    """All data about starts; `rows` is empty without a start."""

    rows: list[StartRow] = field(default_factory=list)
    count: int = 0
    over: int = 0
    median: float | None = None
    worst: StartRow | None = None
    unaccounted: float | None = None
    base_median: float | None = None
    base_count: int = 0
    budget: float | None = None
    budget_x: float | None = None
    chosen: StartRow | None = None
    until: str = ""
    drawing: Waterfall | None = None
    steps: list[Step] = field(default_factory=list)
    phases: list[PhaseRow] = field(default_factory=list)
    untold: int = 0

    @property
    def whole(self) -> int:
        """Number of processes, including those without a reported start."""
        return self.count + self.untold

    @property
    def pair(self) -> str:
        """The medians of the baseline and of this version; empty if one is unknown."""
        if self.median is None or self.base_median is None:
            return ""
        return f"{numbers.duration(self.base_median)} → {numbers.duration(self.median)}"

    @property
    def difference(self) -> str:
        """The difference of the medians; empty if one is unknown."""
        if self.median is None or self.base_median is None:
            return ""
        return _format_gap(self.median - self.base_median)

    @property
    def sub(self) -> str:
        """The line under the median."""
        if self.budget is None:
            return "no budget set"
        return f"budget {numbers.duration(self.budget)}, {self.over} of {self.count} over"

    @property
    def near(self) -> bool:
        """Whether the median is near the budget."""
        return (
            self.budget is not None
            and self.median is not None
            and self.median >= NEAR * self.budget
        )

    @property
    def change(self) -> str:
        """The change of the median from the baseline; informative, not evaluated."""
        return (
            numbers.change(self.median / self.base_median - 1)
            if self.median and self.base_median
            else ""
        )


def starts_card(
    own: Sequence[ProcessStart],
    theirs: Sequence[ProcessStart],
    *,
    budget: float | None,
    wanted: int | None = None,
) -> StartsCard:
    """Builds the card. The detailed start is `wanted`, or else the median start."""
    known = sorted(
        ((one, one.start) for one in own if one.start),
        key=lambda pair: (-pair[1].total, pair[0].id),
    )
    if not known:
        return StartsCard(budget=budget, untold=len(own))
    totals = [start.total for _, start in known]
    scale = 1.03 * max([*totals, budget or 0.0]) or 1.0
    chosen = _chosen(known, wanted)
    rows = [_row(one, start, scale, budget, one.id == chosen[0].id) for one, start in known]
    base = [one.start.total for one in theirs if one.start]
    steps = _steps(chosen[1])
    gaps = [start.unaccounted for _, start in known if start.unaccounted is not None]
    return StartsCard(
        rows=rows,
        count=len(rows),
        over=sum(row.over for row in rows),
        median=median(totals),
        worst=rows[0],
        unaccounted=median(gaps) if gaps else None,
        base_median=median(base) if base else None,
        base_count=len(base),
        budget=budget,
        budget_x=round(100 * budget / scale, 2) if budget else None,
        chosen=next(row for row in rows if row.chosen),
        until=ENDS.get(chosen[1].until, chosen[1].until),
        drawing=build_waterfall(chosen[1].total, steps, budget),
        steps=steps,
        phases=_phases([start for _, start in known], [one.start for one in theirs if one.start]),
        untold=len(own) - len(known),
    )


def list_waterfall_rows(card: StartsCard) -> list[WaterfallRow]:
    """The phases of the drawn start in order, then phases that only other starts have."""
    if card.drawing is None:
        return []
    medians = {row.name: row for row in card.phases}
    rows = [
        WaterfallRow(_title(bar.name), bar, medians.pop(_title(bar.name), None))
        for bar in card.drawing.bars
    ]
    return rows + [WaterfallRow(name, None, row) for name, row in medians.items()]


def _chosen(
    known: list[tuple[ProcessStart, ColdStartData]], wanted: int | None
) -> tuple[ProcessStart, ColdStartData]:
    """The wanted start; else the median of the starts with reported stages."""
    asked = next((pair for pair in known if pair[0].id == wanted), None)
    told = [pair for pair in known if pair[1].told] or known
    return asked or told[len(told) // 2]


def _row(
    one: ProcessStart, start: ColdStartData, scale: float, budget: float | None, chosen: bool
) -> StartRow:
    parts = [
        (round(100 * step.begin / scale, 2), round(100 * step.seconds / scale, 2), step.css)
        for step in _steps(start)
        if step.name != UNACCOUNTED
    ]
    return StartRow(
        one,
        start.total,
        parts,
        round(100 * start.total / scale, 2),
        budget is not None and start.total > budget,
        chosen,
        start.told,
    )


def _steps(start: ColdStartData) -> list[Step]:
    return build_steps(start.total, start.stages, start.phases)


def _phases(own: Sequence[ColdStartData], theirs: Sequence[ColdStartData]) -> list[PhaseRow]:
    """Compares only starts with reported stages, because two stages derived from reports are too
    coarse."""
    mine, base = (
        [sum_by_name(_steps(start)) for start in side if start.told] for side in (own, theirs)
    )
    names = list(dict.fromkeys(name for side in (mine, base) for one in side for name in one))
    rows = [
        _phase(name, [one.get(name, 0.0) for one in mine], [one.get(name, 0.0) for one in base])
        for name in names
        if mine
    ]
    return sorted(
        rows,
        key=lambda row: (
            -((row.seconds - row.base_seconds) if row.base_seconds is not None else row.seconds)
        ),
    )


def _phase(name: str, mine: list[float], base: list[float]) -> PhaseRow:
    value, before = median(mine), median(base) if base else None
    title = _title(name)
    if before is None:
        return PhaseRow(title, numbers.duration(value), "", "", "", value, None)
    gap = value - before
    change = _format_gap(gap)
    return PhaseRow(
        title,
        numbers.duration(value),
        numbers.duration(before),
        change,
        _apart(mine, base, gap),
        value,
        before,
    )


def _format_gap(gap: float) -> str:
    return "no change" if abs(gap) < 0.05 else f"{'+' if gap > 0 else ''}{numbers.duration(gap)}"


def _title(name: str) -> str:
    return "Unaccounted" if name == UNACCOUNTED else name


def _apart(mine: list[float], base: list[float], gap: float) -> str:
    """Text for separated starts: no start of one side lies within the range of the other, and the
    difference is noticeable."""
    if min(len(mine), len(base)) < ENOUGH or abs(gap) < max(0.5, 0.1 * median(base)):
        return ""
    if min(mine) > max(base):
        return f"all {len(mine)} starts slower than all {len(base)} of the baseline"
    return (
        f"all {len(mine)} starts faster than all {len(base)} of the baseline"
        if max(mine) < min(base)
        else ""
    )


def start_json(card: StartsCard) -> dict[str, object]:
    """The card as JSON."""
    return {
        "median": card.median,
        "budget": card.budget,
        "over_budget": card.over,
        "starts": [
            {
                "instance": row.process.name,
                "started_at": format_time(row.process.started_at),
                "total": row.total,
                "unaccounted": row.process.start.unaccounted if row.process.start else None,
                "stages": [list(stage) for stage in row.process.start.stages]
                if row.process.start
                else [],
            }
            for row in card.rows[:MOST_IN_JSON]
        ],
        "phases": [
            {
                "phase": row.name,
                "median": row.seconds,
                "baseline": row.base_seconds,
                "apart": row.apart,
            }
            for row in card.phases
        ],
    }


def format_time(at: datetime) -> str:
    """A time in ISO 8601."""
    return at.isoformat()
