"""Cohort text: names the cohort that a change is of, and the cohorts that disagree."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.text.sentences import orient_change
from dashboard.vocabulary.numbers import change

PART = " · "
"""Separates the parts of a stratum's name."""
NAMED_COHORTS = 2
PREPOSITIONS = {
    "bucket": "for shapes ",
    "mode": "in mode ",
    "runtime": "with ",
    "world_size": "with ",
}
"""Words before the name of a cohort, by its kind. GPU types and strata are places: `on A100`."""


def cohort_phrase(row: Evidence) -> str:
    """` on A100`, ` in mode default`, ` for shapes 2^12`: the only cohort that changed; else
    empty."""
    if row.cohort is None:
        return ""
    kind, name = row.cohort
    strata = [one.stratum for one in row.strata]
    short = dict(zip(strata, shorten_names(strata), strict=True)) if kind == "stratum" else {}
    return f" {name_place(kind, short.get(name, name))}"


def name_place(kind: str, name: str) -> str:
    """`on A100`, `for shapes 2^12`: a cohort as the place of a change."""
    return f"{PREPOSITIONS.get(kind, 'on ')}{name}"


def disagreement_phrase(row: Evidence) -> str:
    """` (+20% on A100, +2% on H100)`: the cohorts with the largest and the smallest change, if the
    cohorts disagree; else empty. The dimension that explains the disagreement is named."""
    changes = [*row.cohort_changes]
    if not changes and row.strata_differ:
        names = shorten_names([one.stratum for one in row.strata])
        changes = [
            ("stratum", name, one.change) for name, one in zip(names, row.strata, strict=True)
        ]
    if len(changes) < NAMED_COHORTS:
        return ""
    sign = -1.0 if (row.change or 0.0) < 0 else 1.0
    changes.sort(key=lambda item: -sign * item[2])
    said = [
        f"{change(orient_change(size, row.worse))} {name_place(kind, name)}"
        for kind, name, size in (changes[0], changes[-1])
    ]
    more = len(changes) - NAMED_COHORTS
    between = f", {more} more cohort{'s' if more > 1 else ''} in between" if more else ""
    return f" ({said[0]}, {said[-1]}{between})"


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names of strata without the parts that all of them share; a single name stays as it is."""
    parts = [name.split(PART) for name in names]
    common = set(parts[0]).intersection(*parts[1:]) if len(parts) > 1 else set()
    return [
        PART.join(part for part in one if part not in common) or name
        for one, name in zip(parts, names, strict=True)
    ]
