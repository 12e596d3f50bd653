"""Cohorts: single strata and single shape buckets of a compared level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from dashboard.regressions.judge.inputs import CellKey, Stratum, stratum_name
from dashboard.regressions.judge.matched_cell import MatchedCell

CohortCells = dict[Stratum, list[MatchedCell]]


class Cohort(NamedTuple):
    """A single stratum, or a single shape bucket over all strata."""

    kind: Literal["stratum", "bucket"]
    name: str


def list_cohorts(cells: Mapping[CellKey, MatchedCell]) -> dict[Cohort, CohortCells]:
    """The cells of every stratum and of every bucket, if there are several of the kind."""
    strata: dict[Cohort, CohortCells] = {}
    buckets: dict[Cohort, CohortCells] = {}
    for (stratum, bucket), cell in cells.items():
        name = Cohort("stratum", stratum_name(stratum))
        strata.setdefault(name, {}).setdefault(stratum, []).append(cell)
        buckets.setdefault(Cohort("bucket", bucket), {}).setdefault(stratum, []).append(cell)
    return (strata if len(strata) > 1 else {}) | (buckets if len(buckets) > 1 else {})
