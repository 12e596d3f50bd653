"""Layouts of a comparison, ranked by the information that each contributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dashboard.regressions.judge.inputs import Layout, Stratum
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import Group


def rank_layouts(
    groups: Iterable[Group], strata: Mapping[Stratum, list[MatchedCell]]
) -> tuple[Layout, ...]:
    """The layouts of these groups, most informative first."""
    weights: dict[Layout, float] = {}
    for part in groups:
        aligned = any(
            place.aligned
            for cell in strata[part.stratum]
            for place in cell.places.values()
            if place.minutes
        )
        past: Layout = "day_before" if aligned else "past_by_load"
        how: Layout = past if part.same_hosts else "side_by_side"
        weights[how] = weights.get(how, 0.0) + 1.0 / part.k
    return tuple(sorted(weights, key=lambda how: (-weights[how], how)))
