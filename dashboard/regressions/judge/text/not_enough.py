"""Text of NOT ENOUGH DATA: describes the missing data, the estimate so far, and the next step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dashboard.regressions.judge.result import Evidence, HeldBy, Outcome, Reason
from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.regressions.judge.text.cohorts import disagreement_phrase, shorten_names
from dashboard.regressions.judge.text.counts import baseline_phrase, count_phrase
from dashboard.regressions.judge.text.levels import (
    against_phrase,
    describe_baseline,
    find_improvement,
    improvement_sentence,
    interval,
    is_count,
    levels_phrase,
    limit_phrase,
    size_phrase,
    subject_phrase,
)
from dashboard.regressions.judge.text.runs import name_baseline, run_reasons
from dashboard.regressions.judge.text.sentences import capitalize, list_words, orient_change
from dashboard.regressions.judge.text.steps import next_step_phrase
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import SPACE, format_minutes, magnitude, number, percent
from dashboard.vocabulary.reasons import UNDECIDED

UNCHANGED = "0%"
UNCONFIRMED: tuple[Reason, ...] = ("before_look", "not_within_bound", "bucket_too_wide")
"""Reasons with a comparison, so that a check can end HEALTHY."""


def not_enough_sentence(
    outcome: Outcome, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> str:
    """The missing data, the estimate so far, and the cheapest next step."""
    baseline = name_baseline(outcome, baseline)
    step = outcome.next_step
    advice = next_step_phrase(step, shorten_stratum(outcome, step.stratum)) if step else ""
    missing = missing_sentences(outcome, candidate, baseline, say_minute).get(outcome.reason)
    if missing is None:
        said = undecided_sentences(outcome, baseline, say_minute, advice)
        said += not_judged_phrases(outcome, ("one_sided", "bucket_too_wide"))
    else:
        said = f"{missing} {advice}".strip()
    return lost_healthy_sentence(outcome, say_minute) + said + adoption(outcome, candidate)


def lost_healthy_sentence(outcome: Outcome, say_minute: Callable[[int], str]) -> str:
    """The end of the last HEALTHY and its reason, if HEALTHY was the verdict before; else empty."""
    before = outcome.transitions[-2:-1]
    if not before or before[0][1] != "healthy":
        return ""
    lost = outcome.lost_healthy if outcome.reason in UNCONFIRMED else None
    named = [find_metric(name).subject for name in lost.metrics] if lost else []
    why = (
        f"; the check after {format_minutes(lost.look)} did not confirm "
        f"{list_words(named) or 'the result'}"
        if lost
        else ""
    )
    return f"HEALTHY until {say_minute(outcome.since)}{why}. "


def shorten_stratum(outcome: Outcome, stratum: str) -> str:
    """The name of a stratum without the parts that all compared strata share."""
    names = sorted({part.stratum for row in outcome.evidence for part in row.strata})
    return dict(zip(names, shorten_names(names), strict=True)).get(stratum, "")


def missing_sentences(
    outcome: Outcome, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> Mapping[Reason, str]:
    """The missing data for each reason that prevents any result."""
    return {
        **run_reasons(outcome, candidate),
        "no_candidate": f"{candidate} has not reported a call yet.",
        "silent": f"{candidate} has been silent since "
        f"{say_minute(outcome.last_candidate_minute or outcome.minute)}.",
        "warming_up": f"Instances of {candidate} are warming up; their first "
        f"{format_minutes(excluded_minutes(outcome))} are excluded.",
        "mostly_warm_up": mostly_warm_up_sentence(outcome, candidate),
        "no_baseline": f"{baseline} had no traffic alongside {candidate} or in the preceding "
        f"24{SPACE}h.",
        "one_after_the_other": f"{candidate} started after {baseline} had ended, and {baseline} "
        f"has no comparable calls 24{SPACE}h earlier.",
        "in_turn": f"{candidate} and {baseline} rarely receive traffic within the same "
        f"5{SPACE}min, so they cannot be compared.",
        "no_common_host": f"{candidate} started after {baseline} had ended, on no host where "
        f"{baseline} had run for 3{SPACE}h. If each pod has its own host name, set "
        "COMPILEWATCH_NODE to the node of the pod.",
        "no_longer_compared": f"No calls of {candidate} have been compared with {baseline} since "
        f"{say_minute(outcome.last_compared_minute or 0)}.",
        "no_common_stratum": f"{candidate} and {baseline} have no cohort and shape bucket in "
        "common.",
        "too_few_calls": f"No instance of {candidate} or {baseline} made 20 calls of one shape "
        "within an hour.",
        "one_sided": f"{candidate} and {baseline} do not both report call durations.",
        "bucket_too_wide": f"The engine's histogram buckets are wider than the difference between "
        f"{candidate} and {baseline}. Run the agent in the engine's processes to measure call "
        "times.",
        "muted": "Every comparable metric is muted in the settings: unmute a metric.",
        "too_short": f"Only {format_minutes(outcome.compared_minutes)} compared with "
        f"{baseline} so far.",
    }


def excluded_minutes(outcome: Outcome) -> int:
    """The first minutes of a process that are not compared."""
    return outcome.warm_up.minutes if outcome.warm_up else PRODUCTION.warm_up_minutes


def mostly_warm_up_sentence(outcome: Outcome, candidate: str) -> str:
    """The share of a candidate's minutes that warm-up excludes, if its processes restart often."""
    share = outcome.warm_up.candidate.share if outcome.warm_up else 0.0
    return (
        f"Processes of {candidate} restart often: the warm-up of "
        f"{format_minutes(excluded_minutes(outcome))} excludes {percent(share)} of its minutes."
    )


def undecided_sentences(
    outcome: Outcome, baseline: str, say_minute: Callable[[int], str], advice: str
) -> str:
    """An improvement, the metric that holds back the verdict, the advice, and the next check."""
    held = outcome.held_by
    look = f"Next check at {say_minute(outcome.next_look)}." if outcome.next_look else ""
    better = improvement_sentence(outcome.evidence, baseline)
    if held is None:
        against = describe_baseline(baseline, outcome.layouts).rstrip(",")
        said = [better or f"No clear result yet compared with {against}.", advice, look]
    elif held.helps == "time" and outcome.reason == "before_look":
        so_far = [estimate_sentence(outcome, held, baseline, ""), visible_sentence(held)]
        look = look or "No check yet: too few compared minutes."
        said = [look, better] if better else [look, *so_far]
    else:
        said = [better, estimate_sentence(outcome, held, baseline, "Not enough data on ")]
        # The time of the next check is the advice to wait.
        advice = "More time helps." if held.helps == "time" else advice
        alone = "More time alone does not help." if held.helps == "instances" and advice else ""
        said += [visible_sentence(held), alone, advice, look]
    return " ".join(filter(None, said))


def estimate_sentence(outcome: Outcome, held: HeldBy, baseline: str, start: str) -> str:
    """The estimate of a metric so far, with its interval and both levels; or its counts. Empty if
    the improvement is already a sentence."""
    row = next(
        row for row in outcome.evidence if (row.metric, row.region) == (held.metric, held.region)
    )
    if row is find_improvement(outcome.evidence):
        return ""
    several = len({each.region for each in outcome.evidence if each.region}) > 1
    subject = subject_phrase(row, several)
    if row.change is None and row.candidate is None:
        why = UNDECIDED.get(row.reason, "nothing to compare yet")
        return capitalize(f"{start}{subject}: {why}.")
    if is_count(row):
        said = f"{count_phrase(row)}, {baseline_phrase(row, baseline)}"
        return f"{start}{subject}: {said}." if start else f"So far, {said}."
    size = difference_phrase(row, baseline)
    return f"{start}{subject}: {size}." if start else f"So far, {subject} is {size}."


def difference_phrase(row: Evidence, baseline: str) -> str:
    """`4.1% slower (12% faster to 23% slower) than v1, 10.4 ms instead of 10 ms`."""
    both = levels_phrase(row)
    if magnitude(orient_change(row.change or 0.0, row.worse)) == UNCHANGED:
        than = describe_baseline(baseline, row.layouts).rstrip(",")
        limit = f", {limit_phrase(row.tolerated, row.worse)}" if row.tolerated else ""
        return f"unchanged ({interval(row, True)}{limit}) compared with {than}"
    against = against_phrase(row, baseline).rstrip(",")
    size = size_phrase(row, limit=row.tolerated)
    return f"{size}{against}{f', {both}' if both else ''}{disagreement_phrase(row)}"


def visible_sentence(held: HeldBy) -> str:
    """The change that the present data would show in most cases."""
    if held.visible_90 is None:
        return ""
    metric = find_metric(held.metric)
    if metric.kind == "share":
        factor = number(1.0 + held.visible_90)
        return f"A share {factor} times as high would be detected in 90% of cases."
    down = metric.direction == "down"
    size = magnitude(orient_change(held.visible_90, -1 if down else 1))
    return f"A regression of {size} would be detected in 90% of cases."


def not_judged_phrases(outcome: Outcome, reasons: Collection[str]) -> str:
    """Metrics that the verdict excludes for one of these reasons."""
    silent = [
        row
        for row in outcome.evidence
        if row.hard and row.judged and row.reason in reasons and row.label == "NOT ENOUGH DATA"
    ]
    return "".join(
        f" {capitalize(find_metric(row.metric).subject)} is not evaluated: {UNDECIDED[row.reason]}."
        for row in silent
    )


def adoption(outcome: Outcome, candidate: str) -> str:
    """A note on a version with very little traffic."""
    return (
        f" Low traffic: {candidate} serves {percent(outcome.adoption or 0.0)} of calls."
        if outcome.low_adoption
        else ""
    )
