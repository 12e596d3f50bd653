"""Bucketed levels: whether an engine's histogram buckets hide a change of a level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from dashboard.regressions.judge.buckets import separates
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import Total, Unit


def hides_change(
    cells: Iterable[MatchedCell],
    past_of: Callable[[MatchedCell], Mapping[Unit, Total]],
    worse: int,
    effect: float,
) -> bool:
    """True if the change without the cells whose levels lie in one bucket is below the smallest
    effect, and there are such cells."""
    shown, all_minutes, hides = 0.0, 0, False
    for cell in cells:
        totals = [*cell.candidate.values(), *past_of(cell).values()]
        minutes = sum(total.minutes for total in totals)
        if not minutes:
            continue
        level = math.fsum(total.level for total in totals)
        difference = math.fsum(total.difference for total in totals)
        base, candidate = (worse * value / minutes for value in (level - difference, level))
        all_minutes += minutes
        if cell.bounds is None or separates(base, candidate, cell.bounds):
            shown += difference
        else:
            hides = True
    return hides and shown < effect * all_minutes
