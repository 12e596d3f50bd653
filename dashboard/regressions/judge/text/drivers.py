"""Driver text: describes the changes on which a verdict rests, and the calls that explain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dashboard.regressions.judge.result import Evidence, Outcome
from dashboard.regressions.judge.text.counts import baseline_phrase, count_phrase, find_main_cause
from dashboard.regressions.judge.text.levels import (
    against_phrase,
    excludes_zero,
    instances_phrase,
    is_count,
    level_phrase,
)
from dashboard.regressions.judge.text.onset import describe_start, started_together
from dashboard.regressions.judge.text.runs import name_baseline

COUNTS_WITH_CAUSES = ("eager", "stalled")
"""Counts with a known cause."""
MOST_LEVELS = 2
NOT_RECOVERED = "the last half hour shows no recovery"


def list_drivers(outcome: Outcome) -> list[Evidence]:
    """The rows on which the verdict rests. ROLL BACK rests on no interval that contains zero: its
    start was proven, but the present mean no longer proves it."""
    rows = [row for row in outcome.evidence if row.drives]
    if outcome.verdict != "roll_back":
        return rows
    return [row for row in rows if excludes_zero(row) or row.rule == "affected"]


def drivers_phrase(
    outcome: Outcome, baseline: str, say_minute: Callable[[int], str], cause: str | None
) -> str:
    """The levels that changed most, and the calls that explain them."""
    baseline = name_baseline(outcome, baseline)
    proven = list_drivers(outcome)
    rows = proven or [row for row in outcome.evidence if row.drives]
    levels, counts = select_levels(rows), select_counts(rows)
    several = len({row.region for row in outcome.evidence if row.region}) > 1
    starts = {id(row): describe_start(row, outcome.deployed_minute, say_minute) for row in rows}
    parts = describe_levels(levels, starts, baseline, several, with_interval=bool(proven))
    if levels:
        parts += [
            count_phrase(row) + ("" if started_together(row, levels[0]) else starts[id(row)])
            for row in counts
        ]
    else:
        parts += [
            f"{count_phrase(row)} {instances_phrase(row)}{starts[id(row)]}, "
            f"{baseline_phrase(row, baseline)}"
            for row in counts
        ]
    parts += [] if proven else [NOT_RECOVERED]
    known = (
        cause
        if cause is not None
        else next((found for row in counts if (found := find_main_cause(row))), None)
    )
    # Eager and stalled calls come last, because the known cause explains them.
    explained = any(row.metric in COUNTS_WITH_CAUSES for row in counts)
    return "; ".join(parts) + (
        f": {known}" if known and explained else f"; {known}" if known else ""
    )


def describe_levels(
    levels: Sequence[Evidence],
    starts: Mapping[int, str],
    baseline: str,
    several: bool,
    *,
    with_interval: bool,
) -> list[str]:
    """The levels in words. The second one omits the baseline, instances and start of the first."""
    parts = []
    for row in levels:
        against, place = against_phrase(row, baseline), f" {instances_phrase(row)}"
        start, first = starts[id(row)], levels[0]
        if row is not first:
            against = "" if row.layouts == first.layouts else against
            place = "" if instances_phrase(row) == instances_phrase(first) else place
            start = "" if start == starts[id(first)] else start
        parts.append(
            level_phrase(
                row,
                against,
                place + start,
                several,
                with_interval=with_interval,
                limit=row.smallest_effect,
            )
        )
    return parts


def select_levels(rows: Sequence[Evidence]) -> list[Evidence]:
    """The levels that changed most, hard ones first; a second one only if it is hard."""
    levels = sorted(
        (row for row in rows if not is_count(row)),
        key=lambda row: (not row.hard, -(row.change or 0.0)),
    )
    return levels[:1] + [row for row in levels[1:MOST_LEVELS] if row.hard]


def select_counts(rows: Sequence[Evidence]) -> list[Evidence]:
    """The hard counts, those with a known cause last; without a hard one, the first of the soft."""
    counts = sorted(
        (row for row in rows if is_count(row)),
        key=lambda row: (not row.hard, row.metric in COUNTS_WITH_CAUSES, row.metric),
    )
    return [row for row in counts if row.hard] or counts[:1]
