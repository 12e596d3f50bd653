"""Rank matrix: compilations of each rank over time; ranks that agree share a row in large jobs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

COLUMNS, NARROW_COLUMNS = 24, 8
LABEL_EVERY = 4
LEAD_MINUTES = 10
"""Minutes before the divergence."""
MAX_ROWS, MAX_ODD_ROWS, USUAL_ROWS = 16, 12, 2
"""A job of up to MAX_ROWS ranks has a row for each rank. A larger job shows its odd ranks, the
first usual ranks, and all others as one row."""


@dataclass(frozen=True)
class RankTimeline:
    """One rank: the minutes between its first and its last report, and of its compilations."""

    rank: int
    first: int
    last: int
    compiled: Sequence[float]


@dataclass(frozen=True)
class MatrixCell:
    """Text of a cell: the number of compilations so far, or empty without a report. `odd` differs
    from most ranks."""

    text: str
    odd: bool = False


@dataclass(frozen=True)
class MatrixRow:
    """One rank, or all ranks that have no row of their own."""

    label: str
    odd: bool
    cells: list[MatrixCell]

    @property
    def newest_first(self) -> list[MatrixCell]:
        """The cells on a phone."""
        return self.cells[: -NARROW_COLUMNS - 1 : -1]


@dataclass(frozen=True)
class RankMatrix:
    """Columns as their last minute, with a label for every fourth; each spans `step` minutes."""

    minutes: list[int]
    step: int
    rows: list[MatrixRow]
    ranks: int

    @property
    def labelled(self) -> list[tuple[int, bool]]:
        """The columns, and whether a column shows its time."""
        return [(minute, place % LABEL_EVERY == 0) for place, minute in enumerate(self.minutes)]

    @property
    def newest_first(self) -> list[int]:
        """The columns on a phone."""
        return self.minutes[: -NARROW_COLUMNS - 1 : -1]

    @property
    def odd(self) -> int:
        """Number of rows with a diverged rank."""
        return sum(row.odd for row in self.rows)


def draw_rank_matrix(
    ranks: Sequence[RankTimeline], *, odd: Collection[int], since: int, now: int
) -> RankMatrix | None:
    """The matrix from ten minutes before the divergence until now; None without ranks. `odd` are
    the ranks that diverged."""
    if not ranks:
        return None
    first = min(since, now) - LEAD_MINUTES
    step = max(1, math.ceil((now - first + 1) / COLUMNS))
    minutes = [now - step * back for back in range(COLUMNS - 1, -1, -1)]
    counts = {one.rank: [_count(one, minute, step) for minute in minutes] for one in ranks}
    usual = [one.rank for one in ranks if one.rank not in odd] or [one.rank for one in ranks]
    majority = [_majority([counts[rank][place] for rank in usual]) for place in range(COLUMNS)]
    shown, others = _choose_rows([one.rank for one in ranks], odd)
    rows = [_row(rank, counts[rank], majority, rank in odd) for rank in shown]
    if others:
        rows.append(MatrixRow(_name(others), False, _summarize([counts[rank] for rank in others])))
    return RankMatrix(minutes, step, rows, len(ranks))


def _count(one: RankTimeline, minute: int, step: int) -> int | None:
    """Compilations until the end of a column; None outside of the reports."""
    if minute < one.first or minute - step >= one.last:
        return None
    return bisect_left(one.compiled, minute + 1)


def _majority(values: Sequence[int | None]) -> int | None:
    known = Counter(value for value in values if value is not None)
    return known.most_common(1)[0][0] if known else None


def _choose_rows(ranks: list[int], odd: Collection[int]) -> tuple[list[int], list[int]]:
    if len(ranks) <= MAX_ROWS:
        return ranks, []
    diverged = [rank for rank in ranks if rank in odd][:MAX_ODD_ROWS]
    calm = [rank for rank in ranks if rank not in odd][:USUAL_ROWS]
    shown = sorted([*diverged, *calm])
    return shown, [rank for rank in ranks if rank not in shown]


def _row(
    rank: int, counts: Sequence[int | None], majority: Sequence[int | None], odd: bool
) -> MatrixRow:
    cells = [
        MatrixCell("" if mine is None else str(mine), odd and mine not in (None, most))
        for mine, most in zip(counts, majority, strict=True)
    ]
    return MatrixRow(str(rank), odd, cells)


def _name(ranks: Sequence[int]) -> str:
    whole = ranks[-1] - ranks[0] + 1 == len(ranks)
    return f"{ranks[0]}–{ranks[-1]} ({len(ranks):,} ranks)" if whole else f"{len(ranks):,} others"


def _summarize(rows: Sequence[Sequence[int | None]]) -> list[MatrixCell]:
    """One value if all ranks agree, else the lowest and the highest."""
    cells = []
    for column in zip(*rows, strict=True):
        known = [value for value in column if value is not None]
        low, high = (min(known), max(known)) if known else (None, None)
        cells.append(
            MatrixCell("" if low is None else str(low) if low == high else f"{low}–{high}")
        )
    return cells
