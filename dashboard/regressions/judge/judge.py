"""The door to the judge: all minutes of two versions in, the verdict of today out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .comparison import Comparison
from .evidence import evidence_rows
from .minutes import InstanceMinute
from .missing import judged_levels, layouts_of, mix_shift, next_step, not_compared, reason_for
from .outcome import Confidence, Outcome, Reason
from .policy import Verdict
from .sequential import DAY
from .settings import PRODUCTION, Settings


def judge(minutes: Iterable[InstanceMinute], *, now_minute: int, deployed_minute: int, settings: Settings = PRODUCTION) -> Outcome:
    """Walks the closed minutes in order, as they would have been judged live, the day before the deployment first.

    `now_minute` is the first minute that is not closed yet; rows from it on are counted and left out.
    """
    by_minute: dict[int, list[InstanceMinute]] = {}
    ignored = 0
    for row in minutes:
        if row.minute >= now_minute:
            ignored += 1
        elif row.minute >= deployed_minute - DAY:
            by_minute.setdefault(row.minute, []).append(row)
    comparison = Comparison(deployed_minute, settings, with_past=True)
    for minute in sorted(by_minute):
        comparison.add_minute(minute, by_minute[minute])
    return outcome_of(comparison, now_minute=now_minute, rows_ignored=ignored)


def outcome_of(comparison: Comparison, *, now_minute: int, rows_ignored: int = 0) -> Outcome:
    """What a running comparison says at `now_minute`."""
    settings, policy = comparison.settings, comparison.policy
    reason = reason_for(comparison, now_minute)
    last = comparison.lives["candidate"].last
    verdict, since, transitions = said_now(comparison, reason)
    rows = [
        row
        for name in sorted(comparison.regions)
        for row in evidence_rows(comparison.regions[name], settings, comparison.comparisons, verdict)
    ]
    visible = [row.smallest_visible for row in rows if row.judged and row.smallest_visible is not None]
    healthy = policy.healthy if verdict == "healthy" else None
    undecided = verdict == "not_enough_data"
    return Outcome(
        verdict=verdict,
        since=since,
        reason=reason if undecided else "",
        minute=now_minute,
        deployed_minute=comparison.deployed_minute,
        last_candidate_minute=last,
        last_baseline_minute=comparison.lives["baseline"].last,
        compared_minutes=max((series.matched_minutes for _, series in judged_levels(comparison)), default=0),
        layouts=layouts_of(comparison),
        adoption=comparison.adoption.share,
        low_adoption=0.0 < (comparison.adoption.share or 0.0) < settings.low_adoption,
        comparable_share=comparison.comparable(),
        bound=math.expm1(healthy.bound) if healthy is not None else None,
        look=healthy.look if healthy is not None else None,
        smallest_visible=max(visible, default=None),
        next_look=next_look(comparison),
        next_step=next_step(comparison, reason) if undecided or verdict == "watch" else None,
        evidence=tuple(rows),
        not_compared=not_compared(comparison),
        mix_shift=mix_shift(comparison),
        confidence=Confidence(settings.roll_back_alpha, settings.watch_alpha, comparison.comparisons),
        transitions=tuple(transitions),
        rows_ignored=rows_ignored,
    )


def said_now(comparison: Comparison, reason: Reason) -> tuple[Verdict, int, list[tuple[int, Verdict]]]:
    """The verdict, since when, and every change of it: what was well or doubtful is not known any more once a version is silent."""
    policy, last = comparison.policy, comparison.lives["candidate"].last
    verdict, since, transitions = policy.verdict, policy.since, list(policy.transitions)
    if reason == "silent" and last is not None and verdict in ("healthy", "watch"):
        verdict, since = "not_enough_data", last + comparison.settings.silent_minutes
        transitions.append((since, verdict))
    return verdict, since, transitions


def next_look(comparison: Comparison) -> int | None:
    """The minute of the next fixed look, None after the last."""
    looks, taken = comparison.settings.looks, comparison.policy.looks_taken
    return comparison.deployed_minute + looks[taken] if taken < len(looks) else None
