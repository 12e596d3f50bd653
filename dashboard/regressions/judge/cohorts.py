"""Cohorts: the parts of a compared level that share one property, such as a GPU type or a shape
bucket.

Each dimension is tested alone, over all values of the others: a GPU type over all modes, a mode
over all GPU types. A stratum is one value of every dimension. A dimension with a single value is
the whole and no cohort. Cohorts with the same cells are one cohort, named by its dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from dashboard.regressions.judge.inputs import CellKey, Stratum, stratum_name
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import Total, Unit

CohortCells = dict[Stratum, list[MatchedCell]]
CohortKind = Literal["gpu", "mode", "runtime", "world_size", "bucket", "stratum"]

DIMENSIONS: tuple[CohortKind, ...] = ("gpu", "mode", "runtime", "world_size")
"""The dimensions of a stratum, in the order of its parts."""
UNNAMED: dict[CohortKind, str] = {"world_size": "world size 1"}
"""Names of values that a stratum leaves empty. Without a name, an empty value is no cohort."""


class Cohort(NamedTuple):
    """One value of a dimension over all values of the others, or a single stratum."""

    kind: CohortKind
    name: str


class CohortIndex:
    """The cells of every cohort of a level. Cells are only added, so the index is rebuilt when
    there are more."""

    __slots__ = ("_count", "_found")

    def __init__(self) -> None:
        self._count = 0
        self._found: dict[Cohort, CohortCells] = {}

    def find(self, cells: Mapping[CellKey, MatchedCell]) -> dict[Cohort, CohortCells]:
        """The cohorts of these cells."""
        if len(cells) != self._count:
            self._count, self._found = len(cells), list_cohorts(cells)
        return self._found


def list_cohorts(cells: Mapping[CellKey, MatchedCell]) -> dict[Cohort, CohortCells]:
    """The cells of every cohort."""
    members: dict[Cohort, list[CellKey]] = {}
    for key in cells:
        for cohort in name_cohorts(key):
            members.setdefault(cohort, []).append(key)
    found: dict[Cohort, CohortCells] = {}
    seen: set[tuple[CellKey, ...]] = set()
    for cohort, keys in sorted(members.items(), key=lambda item: item[0].kind == "stratum"):
        if len(keys) == len(cells) or tuple(keys) in seen:
            continue
        seen.add(tuple(keys))
        strata = found.setdefault(cohort, {})
        for key in keys:
            strata.setdefault(key[0], []).append(cells[key])
    return found


def name_cohorts(key: CellKey) -> Iterator[Cohort]:
    """The cohorts that a cell belongs to."""
    stratum, bucket = key
    yield from name_dimensions(stratum)
    yield Cohort("bucket", bucket)
    yield Cohort("stratum", stratum_name(stratum))


def name_dimensions(stratum: Stratum) -> Iterator[Cohort]:
    """The value of each dimension of a stratum; none for a stratum without dimensions."""
    if isinstance(stratum, str):
        return
    for kind, value in zip(DIMENSIONS, stratum, strict=False):
        name = value or UNNAMED.get(kind, "")
        if name:
            yield Cohort(kind, name)


def is_worse(
    cells: Sequence[MatchedCell],
    past_of: Callable[[MatchedCell], Mapping[Unit, Total]],
    effect: float,
) -> bool:
    """True if the candidate's mean difference in these cells is at least the smallest effect."""
    totals = [
        total for cell in cells for total in (*cell.candidate.values(), *past_of(cell).values())
    ]
    minutes = sum(total.minutes for total in totals)
    return bool(minutes) and math.fsum(total.difference for total in totals) >= effect * minutes
