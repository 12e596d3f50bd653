"""Period comparison of a model: computes levels of both periods from daily calls, with an equal
traffic mix."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import Literal, NamedTuple

from dashboard.regressions.judge.pooled_estimate import t_quantile

PERIOD_DAYS, BLOCK_DAYS = 28, 7
"""Days of a period and of one observation. Load follows the week, so one observation is a week."""
MIN_DAYS = 14
"""Minimum number of days with calls in a period."""
MIN_COMMON_SHARE = 0.5
"""Minimum share of each period's calls with a match in the other period; below it, the workloads
differ."""
NoComparisonReason = Literal["", "no_calls", "new", "mix", "history"]


class CallGroup(NamedTuple):
    """Comparable calls: the same work on the same machines. Mode and runtime are not part of the
    key, because teams change them to improve."""

    gpu: str
    world_size: int
    region: str
    bucket: str


class CallDay(NamedTuple):
    """Calls of one cell and day. `p50` and `p99` are sums of hourly quantiles, each multiplied by
    its number of timed calls."""

    cell: CallGroup
    day: int
    calls: int
    compiled: int
    known: int
    timed: int
    p50: float
    p99: float


@dataclass(frozen=True)
class LevelChange:
    """A duration in both periods, in seconds, and the interval of its relative change."""

    before: float
    after: float
    low: float
    high: float

    @property
    def change(self) -> float:
        """The relative change: −0.08 is 8% faster."""
        return self.after / self.before - 1


@dataclass(frozen=True)
class RegionPeriods:
    """One region in both periods; `why` is the reason without a comparison. `one_sided` has the
    shares of calls without a match."""

    region: str
    calls: int
    why: NoComparisonReason = ""
    gpus: tuple[str, ...] = ()
    share: float = 0.0
    one_sided: tuple[tuple[CallGroup, float, Literal["new", "gone"]], ...] = ()
    p50: LevelChange | None = None
    p99: LevelChange | None = None


@dataclass(frozen=True)
class PeriodComparison:
    """Both periods, without `today`. `served` is the share of compiled calls before and after."""

    today: int
    first_day: int | None
    regions: tuple[RegionPeriods, ...] = ()
    served: tuple[float | None, float | None] = (None, None)


@dataclass
class _CallSum:
    calls: int = 0
    timed: int = 0
    total: float = 0.0
    days: set[int] = field(default_factory=set)
    blocks: dict[int, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))

    @property
    def level(self) -> float:
        return self.total / self.timed if self.timed else 0.0


Side = Mapping[CallGroup, _CallSum]


def compare_periods(rows: Iterable[CallDay], *, today: int) -> PeriodComparison:
    """Compares the last 28 whole days with the previous 28 days."""
    inside = [row for row in rows if today - 2 * PERIOD_DAYS <= row.day < today and row.calls]
    by_region: dict[str, list[CallDay]] = defaultdict(list)
    for row in inside:
        by_region[row.cell.region].append(row)
    found = (_region(name, of_region, today) for name, of_region in by_region.items())
    before, after = (
        _served(inside, first) for first in (today - 2 * PERIOD_DAYS, today - PERIOD_DAYS)
    )
    ordered = sorted(found, key=lambda one: (-one.calls, one.region))
    return PeriodComparison(
        today, min((row.day for row in inside), default=None), tuple(ordered), (before, after)
    )


def _served(rows: Sequence[CallDay], first: int) -> float | None:
    known = sum(row.known for row in rows if first <= row.day < first + PERIOD_DAYS)
    return (
        sum(row.compiled for row in rows if first <= row.day < first + PERIOD_DAYS) / known
        if known
        else None
    )


def _region(name: str, rows: Sequence[CallDay], today: int) -> RegionPeriods:
    before, after = (
        _sums(rows, first, "p50") for first in (today - 2 * PERIOD_DAYS, today - PERIOD_DAYS)
    )
    calls = sum(one.calls for one in after.values())
    if not after or not before:
        return RegionPeriods(name, calls, why="new" if after else "no_calls")
    both = sorted(set(before) & set(after))
    share = min(_share(before, both), _share(after, both))
    one_sided = (*_list_one_sided(after, both, "new"), *_list_one_sided(before, both, "gone"))
    facts = RegionPeriods(
        name,
        calls,
        gpus=tuple(sorted({cell.gpu for cell in both})),
        share=share,
        one_sided=one_sided,
    )
    if min(len(_days(side)) for side in (before, after)) < MIN_DAYS:
        return _why(facts, "history")
    if share < MIN_COMMON_SHARE:
        return _why(facts, "mix")
    tail_before, tail_after = (
        _sums(rows, first, "p99") for first in (today - 2 * PERIOD_DAYS, today - PERIOD_DAYS)
    )
    p50, p99 = _level(before, after, both), _level(tail_before, tail_after, both)
    return RegionPeriods(
        name, calls, "" if p50 else "history", facts.gpus, share, one_sided, p50, p99
    )


def _why(facts: RegionPeriods, why: NoComparisonReason) -> RegionPeriods:
    return RegionPeriods(facts.region, facts.calls, why, facts.gpus, facts.share, facts.one_sided)


def _sums(rows: Iterable[CallDay], first: int, quantile: Literal["p50", "p99"]) -> Side:
    found: dict[CallGroup, _CallSum] = defaultdict(_CallSum)
    for row in rows:
        if not (first <= row.day < first + PERIOD_DAYS and row.timed):
            continue
        one, total = found[row.cell], row.p50 if quantile == "p50" else row.p99
        one.calls, one.timed, one.total = (
            one.calls + row.calls,
            one.timed + row.timed,
            one.total + total,
        )
        one.days.add(row.day)
        block = one.blocks[(row.day - first) // BLOCK_DAYS]
        block[0], block[1] = block[0] + total, block[1] + row.timed
    return found


def _days(side: Side) -> set[int]:
    return set().union(*(one.days for one in side.values()))


def _share(side: Side, both: Iterable[CallGroup]) -> float:
    return sum(side[cell].calls for cell in both) / sum(one.calls for one in side.values())


def _list_one_sided(
    side: Side, both: Sequence[CallGroup], word: Literal["new", "gone"]
) -> list[tuple[CallGroup, float, Literal["new", "gone"]]]:
    whole, known = sum(one.calls for one in side.values()), set(both)
    found = [(cell, one.calls / whole, word) for cell, one in side.items() if cell not in known]
    return sorted(found, key=lambda one: -one[1])


def _level(before: Side, after: Side, both: Sequence[CallGroup]) -> LevelChange | None:
    """Levels with equal weights of each cell in both periods, so that a shift of the mix does not
    count as a change."""
    whole = [sum(side[cell].timed for cell in both) for side in (before, after)]
    weights = {cell: before[cell].timed / whole[0] + after[cell].timed / whole[1] for cell in both}
    levels = [
        sum(weights[cell] * side[cell].level for cell in both) / 2 for side in (before, after)
    ]
    weeks = [_compute_week_deviations(side, weights) for side in (before, after)]
    if min(levels) <= 0 or min(len(values) for values in weeks) < 2:
        return None
    error = math.sqrt(sum(variance(values) / len(values) for values in weeks))
    margin = t_quantile(sum(len(values) for values in weeks) - 2, 0.025) * error
    change = math.log(levels[1] / levels[0])
    return LevelChange(
        levels[0], levels[1], math.expm1(change - margin), math.expm1(change + margin)
    )


def _compute_week_deviations(side: Side, weights: Mapping[CallGroup, float]) -> list[float]:
    """Log deviation of each week from its period; cells without calls in a week are excluded on
    both sides of the ratio."""
    found = []
    for week in range(PERIOD_DAYS // BLOCK_DAYS):
        there = [
            (weight, side[cell].blocks[week], side[cell].level)
            for cell, weight in weights.items()
            if week in side[cell].blocks
        ]
        usual = sum(weight * level for weight, _, level in there)
        seen = sum(weight * total / timed for weight, (total, timed), _ in there)
        if usual > 0 and seen > 0:
            found.append(math.log(seen / usual))
    middle = fmean(found) if found else 0.0
    return [value - middle for value in found]
