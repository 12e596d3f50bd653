"""Evaluation: entry point of the judge. Takes all minutes of two versions and returns the current
verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dashboard.regressions.judge.certain_facts import (
    KINDS_WITHOUT_CALLS,
    CertainFact,
    FactKind,
    ObservedFact,
    group_certain_facts,
)
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.evidence import (
    build_pooled_evidence,
    build_region_evidence,
    limit_dots,
)
from dashboard.regressions.judge.held_by import find_held_by
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.next_step import next_step
from dashboard.regressions.judge.not_compared import (
    agents_differ,
    find_reason,
    judged_levels,
    list_layouts,
    mix_shift,
    not_compared,
)
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.process.evidence import (
    build_process_evidence,
    list_processes_not_compared,
)
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.process.series import ProcessTracks
from dashboard.regressions.judge.result import (
    EMPTY_CONTEXT,
    Confidence,
    Evidence,
    JudgeContext,
    Outcome,
    Reason,
)
from dashboard.regressions.judge.runs.outcome import apply_runs
from dashboard.regressions.judge.settings import PRODUCTION, Settings
from dashboard.regressions.judge.stall_coverage import StallCoverage, align_rows, downgrade_columns
from dashboard.regressions.judge.verdict_policy import Verdict, VerdictPolicy

MUTED_WITH: dict[str, tuple[FactKind, ...]] = {
    "eager": ("latched_eager", "budget_burning", "compiled_nothing"),
    "stalled": ("stalled_calls",),
}
"""Facts that add no information to a metric."""
AWAITS_DATA: tuple[Reason, ...] = ("before_look", "not_within_bound")
"""Reasons with a comparison that has no result yet; the other reasons name the missing data."""


def judge(
    minutes: Iterable[InstanceMinute],
    *,
    now_minute: int,
    deployed_minute: int,
    settings: Settings = PRODUCTION,
    states: Iterable[InstanceProcessMinute] = (),
    known: JudgeContext = EMPTY_CONTEXT,
) -> Outcome:
    """Replays the closed minutes in order, as in live operation, beginning with the day before the
    deployment.

    `now_minute` is the first minute that is not closed. Rows from this minute on are counted and
    ignored.
    """
    by_minute: dict[int, tuple[list[InstanceMinute], list[InstanceProcessMinute]]] = {}
    ignored, telling, kept = 0, StallCoverage(), list(minutes)
    telling.record_rows(
        row for row in kept if deployed_minute - DAY_MINUTES <= row.minute < now_minute
    )
    for row in align_rows(kept, telling.silent, lambda row: replace(row, **downgrade_columns(row))):
        if row.minute >= now_minute:
            ignored += 1
        elif row.minute >= deployed_minute - DAY_MINUTES:
            by_minute.setdefault(row.minute, ([], []))[0].append(row)
    for state in states:
        if telling.differ:
            state = replace(state, recompiles=None)
        if state.minute >= now_minute:
            ignored += 1
        elif state.minute >= deployed_minute - DAY_MINUTES:
            by_minute.setdefault(state.minute, ([], []))[1].append(state)
    comparison = Comparison(deployed_minute, settings, with_past=True)
    comparison.agents_differ, comparison.differ_on_graphs = telling.differ, telling.differ_on_graphs
    raw: dict[int, list[InstanceMinute]] = {}
    for row in kept:
        raw.setdefault(row.minute, []).append(row)
    for minute in sorted(by_minute):
        comparison.add_minute(minute, *by_minute[minute])
        comparison.stalls.add(minute, raw.get(minute, ()))
    return evaluate_comparison(comparison, now_minute=now_minute, rows_ignored=ignored, known=known)


def evaluate_comparison(
    comparison: Comparison,
    *,
    now_minute: int,
    rows_ignored: int = 0,
    known: JudgeContext = EMPTY_CONTEXT,
) -> Outcome:
    """The outcome of a running comparison at `now_minute`, with the context of its instances."""
    settings, policy = comparison.settings, comparison.policy
    reason = find_reason(comparison, now_minute)
    stalled = comparison.stalls.facts(known.stalled_budget)
    facts = group_certain_facts(
        (*known.facts, *list_out_of_memory_facts(comparison.process), *stalled),
        now_minute=now_minute,
    )
    transitions = (*policy.transitions, *adjust_transitions(comparison, reason, facts))
    since, verdict = transitions[-1]
    (bounds, look), rows = _bounds_and_look(policy, verdict), list_evidence(comparison, verdict)
    outcome = Outcome(
        verdict=verdict,
        since=since,
        reason=reason if verdict == "not_enough_data" or reason == "silent" else "",
        minute=now_minute,
        **build_coverage(comparison),
        bound=max(bounds.values(), default=None),
        bounds=bounds,
        look=look,
        smallest_visible=smallest_visible(rows, settings),
        **build_advice(comparison, verdict, reason, rows),
        evidence=tuple(rows),
        confidence=build_confidence(comparison),
        transitions=transitions,
        rows_ignored=rows_ignored,
        facts=facts,
        environment=known.environment,
        drift=tuple(comparison.drifted()),
        lost_healthy=policy.lost,
    )
    return apply_runs(outcome, comparison.runs) if comparison.runs else outcome


def build_confidence(comparison: Comparison) -> Confidence:
    """The intended confidence of the labels."""
    settings, regions = comparison.settings, comparison.budget.regions
    return Confidence(
        settings.roll_back_alpha, settings.watch_alpha, len(settings.metrics) * regions
    )


def build_advice(
    comparison: Comparison, verdict: Verdict, reason: Reason, rows: Sequence[Evidence]
) -> dict[str, Any]:
    """The fields of an outcome that describe what a verdict still needs."""
    look = next_look(comparison)
    if verdict not in ("not_enough_data", "watch"):
        return {"next_look": look, "next_step": None}
    held_by, held = (
        find_held_by(comparison, rows)
        if verdict == "not_enough_data" and reason in AWAITS_DATA
        else (None, None)
    )
    return {
        "next_look": look,
        "next_step": next_step(comparison, reason, held_by, held, look),
        "held_by": held_by,
    }


def build_coverage(comparison: Comparison) -> dict[str, Any]:
    """The fields of an outcome that describe the data behind it: times, traffic and layouts."""
    adoption = comparison.adoption.share
    return {
        "deployed_minute": comparison.deployed_minute,
        "last_candidate_minute": comparison.lives["candidate"].last,
        "last_baseline_minute": comparison.lives["baseline"].last,
        "last_compared_minute": comparison.last_compared,
        "compared_minutes": max(
            (series.matched_minutes for _, series in judged_levels(comparison)), default=0
        ),
        "layouts": list_layouts(comparison),
        "adoption": adoption,
        "low_adoption": 0.0 < (adoption or 0.0) < comparison.settings.low_adoption,
        "comparable_share": comparison.comparable(),
        "not_compared": not_compared(comparison)
        + list_processes_not_compared(comparison.process)
        + agents_differ(comparison),
        "mix_shift": mix_shift(comparison),
        "warm_up": comparison.young.summary(),
        "minor": tuple(comparison.minor_regions()) if len(comparison.regions) > 1 else (),
        "ended": tuple(
            (name, region.ended)
            for name, region in sorted(comparison.regions.items())
            if region.ended is not None
        ),
    }


def _bounds_and_look(
    policy: VerdictPolicy, verdict: Verdict
) -> tuple[dict[str, float], int | None]:
    """The bounds that HEALTHY rules out, by metric, and the look of the verdict; empty for other
    verdicts."""
    healthy = policy.healthy if verdict == "healthy" else None
    if healthy is None:
        return {}, None
    return {name: math.expm1(bound) for name, bound in healthy.bounds.items()}, healthy.look


def list_evidence(comparison: Comparison, verdict: Verdict) -> list[Evidence]:
    """Evidence rows of the regions by name, then of the processes."""
    settings, budget = comparison.settings, comparison.budget
    regions = [comparison.regions[name] for name in sorted(comparison.regions)]
    rows = [
        row
        for region in regions
        for row in build_region_evidence(region, settings, budget, verdict)
    ]
    if budget.regions > 1:
        rows += build_pooled_evidence(comparison.pooled, settings, budget, verdict)
    return [
        limit_dots(row)
        for row in rows + build_process_evidence(comparison.process, settings, budget, verdict)
    ]


def adjust_transitions(
    comparison: Comparison, reason: Reason, facts: Sequence[CertainFact]
) -> list[tuple[int, Verdict]]:
    """The policy's transitions, adjusted for silence and confirmed facts, each with its minute."""
    policy, last = comparison.policy, comparison.lives["candidate"].last
    if reason in ("no_candidate", "silent"):
        facts = [fact for fact in facts if fact.kind in KINDS_WITHOUT_CALLS]
    explained = any(fact.severity != "known" for fact in facts)
    if (
        reason == "silent"
        and last is not None
        and policy.verdict in ("healthy", "watch")
        and not explained
    ):
        return [(last + comparison.settings.silent_minutes, "not_enough_data")]
    muted = list_muted_facts(comparison.settings)
    wrong = [
        fact.since for fact in facts if fact.severity == "roll_back" and fact.kind not in muted
    ]
    if wrong and policy.verdict != "roll_back":
        return [(max(policy.since, min(wrong)), "roll_back")]
    news = [fact.since for fact in facts if fact.severity == "watch" and fact.kind not in muted]
    if news and policy.verdict in ("healthy", "not_enough_data"):
        return [(max(policy.since, min(news)), "watch")]
    return []


def list_muted_facts(settings: Settings) -> set[FactKind]:
    """Kinds of facts muted along with eager or stalled calls by an operator. They are shown and do
    not count for the verdict."""
    names = {metric.name for metric in settings.metrics if metric.muted}
    return {kind for name, kinds in MUTED_WITH.items() if name in names for kind in kinds}


def smallest_visible(rows: list[Evidence], settings: Settings) -> float | None:
    """The smallest detectable change of call time, in the region with the lowest sensitivity."""
    leading = {metric.name for metric in settings.metrics if metric.leads}
    return max(
        (
            row.smallest_visible
            for row in rows
            if row.judged and row.metric in leading and row.smallest_visible
        ),
        default=None,
    )


def next_look(comparison: Comparison) -> int | None:
    """The minute of the next fixed look; None after the last one and while the last one waits for
    more data."""
    looks, taken = comparison.settings.looks, comparison.policy.looks_taken
    minute = comparison.deployed_minute + looks[taken] if taken < len(looks) else None
    return (
        minute
        if minute is None or comparison.minute is None or minute > comparison.minute
        else None
    )


def list_out_of_memory_facts(process: ProcessTracks) -> list[ObservedFact]:
    """Instances that ran out of GPU memory, with the minutes of the first and the last event."""
    return [
        ObservedFact(
            "out_of_memory", arm, instance, found.first, until=found.last, count=found.count
        )
        for arm, instances in process.ooms.items()
        for instance, found in instances.items()
    ]
