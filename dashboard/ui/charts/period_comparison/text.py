"""Text of the period comparison: a summary, its sentences, and one row per metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, NamedTuple

from dashboard.ui.charts.period_comparison.compute import (
    MIN_DAYS,
    PERIOD_DAYS,
    CallGroup,
    LevelChange,
    PeriodComparison,
    RegionPeriods,
)
from dashboard.vocabulary import numbers

Answer = Literal["better", "worse", "mixed", "same", "unknown", "early"]
TITLES: dict[Answer, str] = {
    "better": "Better than the previous 28 days",
    "worse": "Worse than the previous 28 days",
    "mixed": "Mixed",
    "same": "No change",
    "unknown": "Not comparable with the previous 28 days",
    "early": "Not enough history",
}
MIN_QUANTILE_CHANGE_RATIO = 0.02
"""A bin of a latency sketch is 2.2% wide; a smaller change of a quantile counts as no change."""
MIN_SHARE_CHANGE = 0.01
"""A smaller change of the compiled share counts as no change."""
MIN_STARTS = 5
MAX_NAMED = 2


@dataclass(frozen=True)
class PeriodCounts:
    """Counts of one period."""

    deployments: int
    roll_backs: int
    starts: int
    start_median: float | None


class PeriodValues(NamedTuple):
    """The numbers of a row: both sides in base units, the change as a ratio minus 1 with its 95%
    interval; None if unknown."""

    unit: str = ""
    before: float | None = None
    after: float | None = None
    change_ratio: float | None = None
    change_low_ratio: float | None = None
    change_high_ratio: float | None = None


NO_VALUES = PeriodValues()


@dataclass(frozen=True)
class PeriodRow:
    """One metric in both periods; `how` is the method, or the reason without a comparison."""

    name: str
    region: str
    before: str
    after: str
    change: str
    how: str
    values: PeriodValues = NO_VALUES


@dataclass(frozen=True)
class PeriodSummary:
    """The card: the answer, its sentences, the rows, and the compared periods."""

    answer: Answer
    sentences: tuple[str, ...]
    rows: tuple[PeriodRow, ...]
    compared: str

    @property
    def title(self) -> str:
        """The answer as a heading."""
        return TITLES[self.answer]


def summarize_periods(
    periods: PeriodComparison, before: PeriodCounts, after: PeriodCounts
) -> PeriodSummary:
    """All texts of the card. The region with the most calls decides the answer; the other regions
    have rows."""
    main = next(iter(periods.regions), None)
    sentences = [
        main_sentence(periods),
        *([_served_sentence(periods)] if main and main.p50 else []),
    ]
    if not _has_too_little_history(periods):
        sentences.append(format_counts(before, after))
    return PeriodSummary(
        decide_answer(periods),
        tuple(filter(None, sentences)),
        tuple(_rows(periods, before, after)),
        _format_compared(periods),
    )


def decide_answer(periods: PeriodComparison) -> Answer:
    """The combined answer of the region with the most calls and of the compiled share."""
    main = next(iter(periods.regions), None)
    if main is None or main.p50 is None:
        return "early" if _has_too_little_history(periods) else "unknown"
    signs = {*_signs(main), *_served_signs(periods)}
    if not signs:
        return "same"
    return "mixed" if len(signs) > 1 else "better" if "better" in signs else "worse"


def _has_too_little_history(periods: PeriodComparison) -> bool:
    return periods.first_day is None or periods.first_day >= periods.today - PERIOD_DAYS


def direction(level: LevelChange) -> Literal["faster", "slower", ""]:
    """The direction of a change; empty if the change is within the noise of the weeks."""
    if abs(level.change) < MIN_QUANTILE_CHANGE_RATIO or level.low <= 0 <= level.high:
        return ""
    return "faster" if level.change < 0 else "slower"


def day_name(day: int) -> str:
    """A day such as 25 Oct 2026."""
    return f"{date(1970, 1, 1) + timedelta(days=day):%-d %b %Y}"


def _signs(region: RegionPeriods) -> Iterator[str]:
    for level in (region.p50, region.p99):
        way = direction(level) if level else ""
        if way:
            yield "better" if way == "faster" else "worse"


def _served_signs(periods: PeriodComparison) -> Iterator[str]:
    before, after = periods.served
    if before is not None and after is not None and abs(after - before) >= MIN_SHARE_CHANGE:
        yield "better" if after > before else "worse"


def main_sentence(periods: PeriodComparison) -> str:
    """The change of the median of the region with the most calls, or the reason without a
    comparison."""
    main = next(iter(periods.regions), None)
    if main is None:
        return (
            f"No calls in the last {2 * PERIOD_DAYS} days. Each period needs {MIN_DAYS} days "
            "with calls."
        )
    name = f"`{main.region}`"
    if main.why == "no_calls":
        return (
            f"No call of {name} was reported in the last {PERIOD_DAYS} days, so there is nothing "
            "to compare."
        )
    if main.why == "mix" or (
        main.why == "new" and (periods.first_day or 0) < periods.today - PERIOD_DAYS
    ):
        return f"{_mix(main, name)}, so a change of p50 would not reflect the model."
    if main.why:
        return _history(periods)
    assert main.p50 is not None
    where = f" on {main.gpus[0]}" if len(main.gpus) == 1 and main.gpus[0] else ""
    way, span = (
        direction(main.p50),
        f"{numbers.duration(main.p50.before)} → {numbers.duration(main.p50.after)}",
    )
    if way:
        return (
            f"p50 of {name}{where} is {numbers.percent(round(abs(main.p50.change), 3))} {way} "
            f"({_interval(main.p50)}), {span}."
        )
    return f"p50 of {name}{where} is unchanged: {span} (95% CI {_format_signed(main.p50)})."


def _history(periods: PeriodComparison) -> str:
    first = periods.first_day if periods.first_day is not None else periods.today
    ready = first + MIN_DAYS + PERIOD_DAYS
    if ready <= periods.today:
        return f"Too few days with calls: each period of {PERIOD_DAYS} days needs {MIN_DAYS}."
    return (
        f"Not enough history: data starts {day_name(first)}, so this comparison is possible from "
        f"{day_name(ready)} at the earliest."
    )


def _mix(region: RegionPeriods, name: str) -> str:
    if region.why == "new":
        return f"{name} has no calls in the previous {PERIOD_DAYS} days"
    cell, share, word = max(region.one_sided, key=lambda one: one[1])
    of = "these" if word == "new" else f"those {PERIOD_DAYS}"
    alone = f"{numbers.percent(share)} of {of} days ran on {_cell(cell)}, the others none"
    return (
        f"Only {numbers.percent(region.share)} of the calls of {name} have a match in both "
        f"periods ({alone})"
    )


def _served_sentence(periods: PeriodComparison) -> str:
    before, after = periods.served
    return (
        f"Served compiled: {numbers.percent(before)} → {numbers.percent(after)} of calls."
        if before is not None and after is not None
        else ""
    )


def format_counts(before: PeriodCounts, after: PeriodCounts) -> str:
    """Counts of ROLL BACK alerts and deployments in both periods."""
    made = (
        f"{numbers.plural(before.deployments, 'deployment')} before and "
        f"{numbers.number(after.deployments)} since"
    )
    if not before.roll_backs and not after.roll_backs:
        return f"No ROLL BACK alert in either period, with {made}."
    if before.roll_backs == after.roll_backs:
        alerts = numbers.plural(after.roll_backs, "ROLL BACK alert")
        return f"{alerts}, as many as before, with {made}."
    return (
        f"{numbers.plural(after.roll_backs, 'ROLL BACK alert')} instead of "
        f"{numbers.number(before.roll_backs)}, with {made}."
    )


def _rows(
    periods: PeriodComparison, before: PeriodCounts, after: PeriodCounts
) -> Iterator[PeriodRow]:
    for region in periods.regions:
        if region.p50 and region.p99:
            yield level_row("p50", region, region.p50)
            yield level_row("p99", region, region.p99)
        else:
            yield PeriodRow("p50 and p99", region.region, "–", "–", "", _why(region))
    if any(share is not None for share in periods.served):
        yield build_compiled_share_row(periods)
    yield _starts_row(before, after)
    has_earlier_calls = (
        periods.first_day is not None and periods.first_day < periods.today - PERIOD_DAYS
    )
    for name, was, now, how in (
        ("ROLL BACK alerts", before.roll_backs, after.roll_backs, "without false positives"),
        ("Deployments", before.deployments, after.deployments, "detected or reported by CI"),
    ):
        yield PeriodRow(
            name,
            "",
            numbers.number(was) if has_earlier_calls else "–",
            numbers.number(now),
            "",
            how if has_earlier_calls else f"{how}; no known calls before",
            PeriodValues("count", was if has_earlier_calls else None, now),
        )


def build_compiled_share_row(periods: PeriodComparison) -> PeriodRow:
    """The share of calls that ran compiled."""
    was, now = periods.served
    change = numbers.points(now - was) if was is not None and now is not None else ""
    how = "all calls with known execution mode, traffic mix unchanged"
    return PeriodRow(
        "Served compiled",
        "",
        _share(was),
        _share(now),
        change,
        how,
        PeriodValues("share", was, now),
    )


def level_row(name: str, region: RegionPeriods, level: LevelChange) -> PeriodRow:
    """The row of a quantile of one region."""
    how = (
        f"{_format_signed(level)}, from {PERIOD_DAYS // 7} weeks each; "
        f"{numbers.percent(region.share)} of calls compared"
    )
    before, after = numbers.duration(level.before), numbers.duration(level.after)
    values = PeriodValues("s", level.before, level.after, level.change, level.low, level.high)
    return PeriodRow(name, region.region, before, after, _format_change(level), how, values)


def _starts_row(before: PeriodCounts, after: PeriodCounts) -> PeriodRow:
    few = min(before.starts, after.starts) < MIN_STARTS
    how = (
        f"median of {numbers.plural(before.starts, 'start')} and of {numbers.number(after.starts)}"
    )
    change = ""
    if not few and before.start_median and after.start_median is not None:
        change = numbers.change(after.start_median / before.start_median - 1)
    said = [
        numbers.duration(one.start_median) if one.start_median is not None else "–"
        for one in (before, after)
    ]
    ratio = (
        after.start_median / before.start_median - 1
        if change and before.start_median and after.start_median is not None
        else None
    )
    values = PeriodValues("s", before.start_median, after.start_median, ratio)
    return PeriodRow(
        "Cold start",
        "",
        said[0],
        said[1],
        change,
        f"{how}; too few to compare" if few else how,
        values,
    )


def _why(region: RegionPeriods) -> str:
    if region.why == "history":
        return f"not compared: fewer than {MIN_DAYS} days with calls in one of the periods"
    if region.why == "mix":
        share = numbers.percent(region.share)
        return f"not compared: {share} of calls have a match in both periods"
    return (
        "not compared: no call in the "
        f"{'previous 28 days' if region.why == 'new' else 'last 28 days'}"
    )


def _format_compared(periods: PeriodComparison) -> str:
    last, middle, first = (
        periods.today - 1,
        periods.today - PERIOD_DAYS,
        periods.today - 2 * PERIOD_DAYS,
    )
    said = (
        f"{day_name(middle)} to {day_name(last)} compared with {day_name(first)} to "
        f"{day_name(middle - 1)}, whole days in UTC."
    )
    main = next(iter(periods.regions), None)
    if main is None or main.p50 is None:
        return said
    left = [
        f"{_cell(cell)} ({word}, {numbers.percent(share)})"
        for cell, share, word in main.one_sided[:MAX_NAMED]
        if share >= 0.005
    ]
    rest = f" Excluded (in one period only): {', '.join(left)}." if left else ""
    return (
        f"{said} Both sides have the same GPU type, number of ranks, region and shape, each "
        f"with the same weight.{rest}"
    )


def _cell(cell: CallGroup) -> str:
    ranks = f", {cell.world_size} ranks" if cell.world_size > 1 else ""
    return f"{cell.gpu or 'no GPU'}{ranks}, shape {cell.bucket or 'unknown'}"


def _share(value: float | None) -> str:
    return "–" if value is None else numbers.percent(value)


def _format_change(level: LevelChange) -> str:
    return numbers.change(level.change) if direction(level) else "no change"


def _interval(level: LevelChange) -> str:
    low, high = sorted(abs(round(100 * end)) for end in (level.low, level.high))
    return f"{low}% to {high}%"


def _format_signed(level: LevelChange) -> str:
    return f"{numbers.change(level.low)} to {numbers.change(level.high)}"
