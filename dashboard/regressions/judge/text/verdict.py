"""Verdict text: describes a verdict in one sentence. Names, times and a known cause come from the
caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dashboard.regressions.judge.result import Evidence, NotCompared, Outcome
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.text.drift import describe_drift
from dashboard.regressions.judge.text.drivers import drivers_phrase, list_drivers
from dashboard.regressions.judge.text.facts import certain_phrase, first_version_sentence
from dashboard.regressions.judge.text.levels import (
    describe_baseline,
    direction,
    improvement_sentence,
)
from dashboard.regressions.judge.text.not_enough import (
    adoption,
    not_enough_sentence,
    not_judged_phrases,
)
from dashboard.regressions.judge.text.runs import describe_missing_proof, name_baseline
from dashboard.regressions.judge.text.sentences import capitalize, orient_change
from dashboard.regressions.judge.text.steps import next_step_phrase
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import format_minutes, magnitude, percent
from dashboard.vocabulary.reasons import UNDECIDED, describe_not_compared

__all__ = ["CONFIDENCE_NOTE", "drift_phrase", "first_version_sentence", "verdict_sentence"]

CONFIDENCE_NOTE = (
    "Intervals are corrected for the number of metrics and for the evaluation at each minute. "
    "They are calibrated on simulated fleets; their validity at every evaluation is not proven."
)

NO_ROLLBACK_ALONE = "not a reason to roll back on its own"
MOST_MINOR = 3
LONG_AGO_MINUTES = 120
"""Minutes without a comparison after which HEALTHY states the last one."""


def verdict_sentence(
    outcome: Outcome,
    *,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None = None,
) -> str:
    """The verdict with size, baseline, place and start of a change; `say_minute` formats an epoch
    minute."""
    over = ended_phrases(outcome, say_minute)
    if outcome.verdict == "roll_back":
        off = outcome.last_candidate_minute if outcome.reason == "silent" else None
        done = (
            f" No traffic since {say_minute(off)}; the evidence is from before."
            if off is not None
            else ""
        )
        return (
            f"Roll back {candidate}: "
            f"{roll_back_phrase(outcome, candidate, baseline, say_minute, cause)}.{done}{over}"
        )
    if outcome.verdict == "watch":
        return capitalize(watch_sentence(outcome, candidate, baseline, say_minute, cause)) + over
    if outcome.verdict == "healthy":
        return healthy_sentence(outcome, baseline, say_minute) + over + adoption(outcome, candidate)
    return not_enough_sentence(outcome, candidate, baseline, say_minute) + over


def ended_phrases(outcome: Outcome, say_minute: Callable[[int], str]) -> str:
    """Regions without traffic on which a ROLL BACK was based, one sentence each."""
    return "".join(
        f" Region `{name}`, flagged for rollback, has had no traffic since {say_minute(at)}."
        for name, at in outcome.ended
    )


def healthy_sentence(outcome: Outcome, baseline: str, say_minute: Callable[[int], str]) -> str:
    """The changes that are ruled out, by metric, and the metrics without a result."""
    rows = {row.metric: row for row in outcome.evidence}
    bounds = {
        name: orient_change(max(bound, 0.0), rows[name].worse if name in rows else 1)
        for name, bound in outcome.bounds.items()
    }
    each = ", ".join(
        f"{metric.phrase} {magnitude(bound)}"
        for metric, bound in ((find_metric(name), bound) for name, bound in bounds.items())
        if metric.kind in ("latency", "level")
    )
    worst = max(bounds.values(), default=0.0)
    baseline = name_baseline(outcome, baseline)
    above = f" above {magnitude(worst)}" if worst else ""
    against = describe_baseline(baseline, outcome.layouts).rstrip(",")
    better = improvement_sentence(outcome.evidence, baseline)
    sentence = (
        f"{better} No regression{above} in {format_minutes(outcome.look or 0)} compared with "
        f"{against}{f' (95% bounds: {each})' if len(bounds) > 1 and worst else ''}."
    ).lstrip()
    if outcome.minor:
        more = len(outcome.minor) - MOST_MINOR
        named = ", ".join(f"`{name}`" for name in outcome.minor[:MOST_MINOR]) + (
            f" and {more} more" if more > 0 else ""
        )
        sentence += f" Excluded (too few calls): {named}."
    last = outcome.last_compared_minute
    if last is not None and outcome.minute - last > LONG_AGO_MINUTES:
        sentence += f" No calls have been compared since {say_minute(last)}."
    return sentence + not_judged_phrases(outcome, UNDECIDED)


def roll_back_phrase(
    outcome: Outcome,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None,
) -> str:
    """The change, and the confirmed fact."""
    stalled = any(row.drives and row.metric == "stalled" for row in outcome.evidence)
    certain = (fact for fact in outcome.facts if fact.severity == "roll_back")
    wrong = next((fact for fact in certain if not (stalled and fact.kind == "stalled_calls")), None)
    said = [certain_phrase(wrong, candidate, baseline, say_minute)] if wrong else []
    if list_drivers(outcome) or not wrong:
        said.insert(0, drivers_phrase(outcome, baseline, say_minute, cause))
    elif wrong.kind == "stalled_calls" and cause:
        said.append(cause)
    return "; ".join(said)


def watch_sentence(
    outcome: Outcome,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None,
) -> str:
    """The change, with the reason against ROLL BACK; or the low share of comparable calls."""
    driving = [row for row in outcome.evidence if row.drives]
    if driving:
        hard = [row for row in driving if row.hard]
        so = "more evidence is needed to roll back" if hard else NO_ROLLBACK_ALONE
        far = max(hard, key=lambda row: row.outlier_change or 0.0, default=None)
        if far is not None and far.outlier and far.outlier_change is not None:
            size = size_of_outlier(far)
            so = f"instance {far.outlier} alone is {size}: check its host first"
        elif hard and all(row.alone for row in hard):
            so = "one instance accounts for nearly all of it: check its host first"
        so = (describe_missing_proof(outcome) or so) if hard else so
        step = outcome.next_step
        swap = f" {next_step_phrase(step)}" if hard and step and step.kind == "swap_hosts" else ""
        return f"{drivers_phrase(outcome, baseline, say_minute, cause)}; {so}.{swap}"
    news = next((fact for fact in outcome.facts if fact.severity == "watch"), None)
    if news:
        why = f"; {cause}" if news.kind == "stalled_calls" and cause else ""
        return f"{certain_phrase(news, candidate, baseline, say_minute)}{why}."
    if outcome.drift:
        return f"{drift_phrase(outcome.drift, candidate, say_minute)}; {NO_ROLLBACK_ALONE}."
    share = percent(outcome.comparable_share or 0.0)
    most = outcome.not_compared[0] if outcome.not_compared else None
    why = f": {not_compared_phrase(most)}" if most else ""
    against = name_baseline(outcome, baseline)
    return f"only {share} of {candidate}'s calls can be compared with {against}{why}."


def size_of_outlier(row: Evidence) -> str:
    """`51% slower`: how far the instance is from the baseline."""
    metric, change = find_metric(row.metric), row.outlier_change or 0.0
    ratio = orient_change(change, row.worse)
    return f"{magnitude(ratio)} {direction(metric, change, ratio)}"


def drift_phrase(
    found: Sequence[SelfDrift], candidate: str, say_minute: Callable[[int], str]
) -> str:
    """The drift of a version and its start; of several regions, the one that changed most."""
    worst = max(found, key=lambda one: one.change)
    return f"{candidate} is drifting: {describe_drift(worst)}, since {say_minute(worst.since)}"


def not_compared_phrase(item: NotCompared) -> str:
    """The calls or metric that were not compared, and the reason."""
    return f"{item.what} ({describe_not_compared(item.why)})"
