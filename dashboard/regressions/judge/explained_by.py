"""Causal attribution: suppresses effects that another regressed metric of the same region
explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dashboard.regressions.judge.result import Evidence


def attribute_causes(
    rows: list[Evidence], follows: Mapping[str, tuple[str, ...]]
) -> list[Evidence]:
    """The rows of one region, each with the first of the metrics it follows that explains it.

    The echo of a level adds nothing to a verdict. Eager calls and the resulting slowdown both
    remain: one shows the cause, the other the size.
    """
    worse = {row.metric: row for row in rows if row.judged and row.label == "REGRESSED"}
    found = []
    for row in rows:
        causes = (
            [worse[name] for name in follows.get(row.metric, ()) if name in worse]
            if row.metric in worse
            else []
        )
        cause = next((cause for cause in causes if explains(cause, row)), None)
        echo = cause is not None and cause.unit != "share"
        found.append(
            replace(row, explained_by=cause.metric, drives=row.drives and not echo)
            if cause
            else row
        )
    return found


def explains(cause: Evidence, effect: Evidence) -> bool:
    """True if a count is the cause, because a count explains any slowdown. A level explains an
    effect that exceeds its own change by less than the smallest effect."""
    if effect.drives and not cause.drives:
        return False
    if cause.unit == "share" or cause.change is None or effect.change is None:
        return True
    return 1.0 + effect.change < (1.0 + cause.change) * (1.0 + effect.smallest_effect)
