"""Layouts of a comparison, ranked by the information that each contributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dashboard.regressions.judge.day_history import DayShifts
from dashboard.regressions.judge.inputs import Layout, Stratum
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import Group

BY_WEEKDAY: dict[Layout, Layout] = {
    "day_before": "day_before_by_weekday",
    "pool_day_before": "pool_day_before_by_weekday",
}
"""The layouts whose day before is adjusted for the weekday."""


def rank_layouts(
    groups: Iterable[Group],
    strata: Mapping[Stratum, list[MatchedCell]],
    days: DayShifts | None,
    controlled: bool,
) -> tuple[Layout, ...]:
    """The layouts of these groups, most informative first."""
    weights: dict[Layout, float] = {}
    for part in groups:
        for how, share in list_shares(part, strata[part.stratum]):
            if days is not None and days.slope:
                how = BY_WEEKDAY.get(how, how)
            weights[how] = weights.get(how, 0.0) + share / part.k
    found = sorted(weights, key=lambda how: (-weights[how], how))
    return (*found, "less_neighbours") if found and controlled else tuple(found)


def list_shares(part: Group, cells: list[MatchedCell]) -> Iterator[tuple[Layout, float]]:
    """The layouts of one group, with their parts of the comparison."""
    if part.same_hosts:
        aligned = any(place.aligned for cell in cells for place in cell.places.values())
        yield "day_before" if aligned else "past_by_load", 1.0
        return
    if part.day_share < 1.0:
        yield "side_by_side", 1.0 - part.day_share
    if part.day_share > 0.0:
        aligned = any(cell.pool.aligned for cell in cells if cell.pool is not None)
        yield "pool_day_before" if aligned else "pool_by_load", part.day_share
