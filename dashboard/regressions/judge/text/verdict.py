"""A verdict in one sentence, made from its evidence; names, times and a known cause come from the
caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dashboard.fleet.metrics.eager_causes import cause_sentence
from dashboard.regressions.judge.certain_facts import CertainFact, describe_fact
from dashboard.regressions.judge.inputs import Layout
from dashboard.regressions.judge.result import Evidence, NextStep, NotCompared, Outcome
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.text.drift import describe_drift
from dashboard.regressions.judge.text.sentences import (
    capitalize,
    orient_change,
)
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import (
    SPACE,
    change_range,
    format_minutes,
    is_factor,
    magnitude,
    number,
    percent,
)
from dashboard.vocabulary.reasons import UNDECIDED, describe_not_compared

CONFIDENCE_NOTE = (
    "Intervals are widened for every metric and for looking again each minute; they are "
    "calibrated on simulated fleets, "
    "not provably valid at every moment."
)

COUNTS_WITH_CAUSES = ("eager", "stalled")
"""Counts of which a cause is known."""
MOST_LEVELS = 2
MOST_MINOR = 3
LONG_AGO_MINUTES = 120
"""Minutes without a comparison after which HEALTHY says since when."""
LAYOUT_PHRASES: dict[Layout, str] = {
    "side_by_side": "",
    "day_before": f" on the same hosts 24{SPACE}h earlier",
    "past_by_load": " on the same hosts before, adjusted for load,",
    "last_day": " in its last day",
}


def describe_baseline(baseline: str, layouts: tuple[Layout, ...]) -> str:
    """The baseline, and where and when it was measured if that was not beside the candidate."""
    return baseline + LAYOUT_PHRASES[layouts[0] if layouts else "side_by_side"]


def verdict_sentence(
    outcome: Outcome,
    *,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None = None,
) -> str:
    """What happened, how much, against what, where and since when; `say_minute` turns an epoch
    minute into a time."""
    over = ended_phrases(outcome, say_minute)
    if outcome.verdict == "roll_back":
        off = outcome.last_candidate_minute if outcome.reason == "silent" else None
        done = (
            f" It has made no call since {say_minute(off)}: this is what was said until then."
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
    """What a roll back rested on and is over, each in a sentence of its own."""
    return "".join(
        f" `{name}`, which was to be rolled back, has not been called since {say_minute(at)}."
        for name, at in outcome.ended
    )


def healthy_sentence(outcome: Outcome, baseline: str, say_minute: Callable[[int], str]) -> str:
    """What is ruled out, of which metric, and what could not be judged."""
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
    worst = magnitude(max(bounds.values(), default=0.0))
    side = "beside" if outcome.layouts[:1] == ("side_by_side",) else "against"
    against = describe_baseline(baseline, outcome.layouts).rstrip(",")
    sentence = (
        f"Nothing worse than {worst} in {format_minutes(outcome.look or 0)} {side} "
        f"{against}{f': {each}' if len(bounds) > 1 else ''}."
    )
    if outcome.minor:
        more = len(outcome.minor) - MOST_MINOR
        named = ", ".join(f"`{name}`" for name in outcome.minor[:MOST_MINOR]) + (
            f" and {more} more" if more > 0 else ""
        )
        sentence += f" Not in it, for their few calls: {named}."
    last = outcome.last_compared_minute
    if last is not None and outcome.minute - last > LONG_AGO_MINUTES:
        sentence += f" Nothing was compared since {say_minute(last)}."
    return sentence + not_judged_phrases(outcome, UNDECIDED)


def not_judged_phrases(outcome: Outcome, reasons: Collection[str]) -> str:
    """What stands beside the answer without being in it, for one of these reasons."""
    silent = [
        row
        for row in outcome.evidence
        if row.hard and row.judged and row.reason in reasons and row.label == "NOT ENOUGH DATA"
    ]
    return "".join(
        f" {capitalize(find_metric(row.metric).phrase)} is not judged: {UNDECIDED[row.reason]}."
        for row in silent
    )


def roll_back_phrase(
    outcome: Outcome,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None,
) -> str:
    """What changed, and what is certainly wrong."""
    stalled = any(row.drives and row.metric == "stalled" for row in outcome.evidence)
    certain = (fact for fact in outcome.facts if fact.severity == "roll_back")
    wrong = next((fact for fact in certain if not (stalled and fact.kind == "stalled_calls")), None)
    said = [certain_phrase(wrong, candidate, baseline, say_minute)] if wrong else []
    if any(row.drives for row in outcome.evidence) or not wrong:
        said.insert(0, drivers_phrase(outcome, baseline, say_minute, cause))
    elif wrong.kind == "stalled_calls" and cause:
        said.append(cause)
    return "; ".join(said)


def certain_phrase(
    fact: CertainFact, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> str:
    """A certain fact with where and since when, and what the baseline shows."""
    said = (
        f"{describe_fact(fact)}, on {plural_instances(fact)} of {candidate} since "
        f"{say_minute(fact.since)}"
    )
    if fact.kind == "stalled_calls":
        return f"{said}{baseline_stalls_phrase(fact, baseline)}"
    if fact.kind == "compiled_nothing" and not fact.on_baseline:
        if fact.baseline_silent:
            return f"{said}; not comparable with {baseline}: agent versions differ"
        served = (
            "served it compiled" if fact.passed_on_baseline else "served no call of it compiled"
        )
        return f"{said}; {baseline} {served}"
    if fact.kind not in ("parity", "shadow_parity"):
        return (
            f"{said}; sampled calls of {baseline} had none"
            if fact.kind == "non_finite"
            else f"{said} and none of {baseline}"
        )
    others = (
        f", and passed on {fact.passed} other{'s' if fact.passed > 1 else ''}"
        if fact.passed
        else ""
    )
    before = (
        f"it passed on {fact.passed_on_baseline} of {baseline}"
        if fact.passed_on_baseline
        else f"{baseline} did not compare it"
    )
    return f"{said}{others}; {before}"


def baseline_stalls_phrase(fact: CertainFact, baseline: str) -> str:
    """What the baseline shows of calls beyond their budget."""
    if fact.baseline_silent:
        return f"; not comparable with {baseline}: agent versions differ"
    return (
        f", and on {fact.on_baseline} of {baseline}"
        if fact.on_baseline
        else f" and none of {baseline}"
    )


def drivers_phrase(
    outcome: Outcome, baseline: str, say_minute: Callable[[int], str], cause: str | None
) -> str:
    """The levels that changed most, and the calls that explain them."""
    rows = [row for row in outcome.evidence if row.drives]
    levels = sorted(
        (row for row in rows if not is_count(row)),
        key=lambda row: (not row.hard, -(row.change or 0.0)),
    )
    levels = levels[:1] + [row for row in levels[1:MOST_LEVELS] if row.hard]
    counts = sorted(
        (row for row in rows if is_count(row)),
        key=lambda row: (not row.hard, row.metric in COUNTS_WITH_CAUSES, row.metric),
    )
    counts = [row for row in counts if row.hard] or counts[:1]
    several = len({row.region for row in outcome.evidence if row.region}) > 1
    parts = [level_phrase(row, baseline, say_minute, several) for row in levels]
    if levels:
        parts += [
            count_phrase(row)
            + (since_phrase(row, say_minute) if row.since != levels[0].since else "")
            for row in counts
        ]
    else:
        parts += [
            f"{count_phrase(row)} on "
            f"{instances_phrase(row)}{since_phrase(row, say_minute)}, "
            f"{baseline_phrase(row, baseline)}"
            for row in counts
        ]
    known = (
        cause
        if cause is not None
        else next((found for row in counts if (found := find_main_cause(row))), None)
    )
    # Eager and stalled calls stand last: what is known of a cause is about them.
    explained = any(row.metric in COUNTS_WITH_CAUSES for row in counts)
    return "; ".join(parts) + (
        f": {known}" if known and explained else f"; {known}" if known else ""
    )


def is_count(row: Evidence) -> bool:
    """Whether a row is told as a share or rate, even where its change is known."""
    return row.change is None or row.unit == "share"


def level_phrase(
    row: Evidence, baseline: str, say_minute: Callable[[int], str], several: bool
) -> str:
    """A level against the baseline, with its interval and how many instances show it."""
    metric = find_metric(row.metric)
    change = row.change or 0.0
    if row.metric == "leak":
        more = (
            f"{percent(change)} ({interval(row, True)}) more than on "
            f"{describe_baseline(baseline, row.layouts)}"
        )
        return (
            f"GPU memory grows by {percent(row.candidate or 0.0)} an hour, {more}, on "
            f"{instances_phrase(row)}{since_phrase(row, say_minute)}"
        )
    of = f" of `{row.region}`" if several and row.region else ""
    ratio, than = orient_change(change, row.worse), describe_baseline(baseline, row.layouts)
    way, word = (
        (f"as {metric.factor_word}", "as")
        if is_factor(ratio)
        else (metric.worse if change >= 0 else metric.better, "than")
    )
    size = f"{magnitude(ratio)} {way} ({interval(row, change >= 0)})"
    least = "at least " if row.baseline_at_most or row.candidate_at_most else ""
    return (
        f"{metric.phrase}{of} is {least}{size} {word} {than} on "
        f"{instances_phrase(row)}{since_phrase(row, say_minute)}"
    )


def count_phrase(row: Evidence) -> str:
    """The share of calls that show a count, or how many there are an hour."""
    value = row.candidate or 0.0
    said = number(value) if row.unit == "per hour" else percent(value)
    return f"{said} {find_metric(row.metric).predicate or f'of calls: {row.metric}'}"


def baseline_phrase(row: Evidence, baseline: str) -> str:
    """The baseline's share or rate of the same count."""
    if row.unit == "per hour":
        return f"{number(row.baseline)} on {baseline}" if row.baseline else f"none on {baseline}"
    return f"{percent(row.baseline)} on {baseline}" if row.baseline else f"none on {baseline}"


def since_phrase(row: Evidence, say_minute: Callable[[int], str]) -> str:
    """Since when a row is regressed, if it is known."""
    return f" since {say_minute(row.since)}" if row.since is not None else ""


def instances_phrase(row: Evidence) -> str:
    """How many of the candidate's instances show it."""
    count, total = row.affected_instances, row.candidate_instances
    unit = "host" if row.layouts[:1] in (("day_before",), ("past_by_load",)) else "instance"
    if count == total:
        return f"its only {unit}" if total == 1 else f"all {total} {unit}s"
    return f"{count} of {total} {unit}s" if count else f"average over {total} {unit}s"


def find_main_cause(row: Evidence) -> str | None:
    """The most frequent cause in the agents' counts; an unknown one is not guessed."""
    return next(
        (said for cause in row.causes if (said := cause_sentence(cause, f"`{row.region}`"))), None
    )


def watch_sentence(
    outcome: Outcome,
    candidate: str,
    baseline: str,
    say_minute: Callable[[int], str],
    cause: str | None,
) -> str:
    """What changed, short of what a roll back asks for; or how little can be compared."""
    driving = [row for row in outcome.evidence if row.drives]
    if driving:
        hard = [row for row in driving if row.hard]
        so = "not yet sure enough to roll back" if hard else "by itself no reason to roll back"
        if hard and all(row.alone for row in hard):
            so = (
                "one instance shows nearly all of it, which is more often its machine than its "
                "version"
            )
        return f"{drivers_phrase(outcome, baseline, say_minute, cause)}; {so}."
    news = next((fact for fact in outcome.facts if fact.severity == "watch"), None)
    if news:
        why = f"; {cause}" if news.kind == "stalled_calls" and cause else ""
        return f"{certain_phrase(news, candidate, baseline, say_minute)}{why}."
    if outcome.drift:
        return (
            f"{drift_phrase(outcome.drift, candidate, say_minute)}; by itself no reason to "
            "roll back."
        )
    share = percent(outcome.comparable_share or 0.0)
    most = outcome.not_compared[0] if outcome.not_compared else None
    why = f": {not_compared_phrase(most)}" if most else ""
    return f"only {share} of {candidate}'s calls can be compared with {baseline}{why}."


def drift_phrase(
    found: Sequence[SelfDrift], candidate: str, say_minute: Callable[[int], str]
) -> str:
    """Where a version is slower than it was itself, and since when; of several regions the one that
    changed most."""
    worst = max(found, key=lambda one: one.change)
    return (
        f"{candidate} got slower by itself: {describe_drift(worst)}, since "
        f"{say_minute(worst.since)}"
    )


def first_version_sentence(
    fact: CertainFact, *, candidate: str, say_minute: Callable[[int], str], cause: str = ""
) -> str:
    """What is certain of a version that has nothing to be compared with."""
    why = f"; {cause}" if cause else ""
    return capitalize(
        f"{describe_fact(fact)}, on {plural_instances(fact)} of {candidate} since "
        f"{say_minute(fact.since)}{why}."
    )


def plural_instances(fact: CertainFact) -> str:
    """On how many instances a certain fact was seen, and which, where that matters."""
    more = len(fact.instances) - len(fact.places)
    named = (
        f" ({', '.join(fact.places)}{f' and {more} more' if more > 0 else ''})"
        if fact.places
        else ""
    )
    return (
        "an instance" if len(fact.instances) == 1 else f"{len(fact.instances)} instances"
    ) + named


def not_compared_phrase(item: NotCompared) -> str:
    """What was not compared and why."""
    return f"{item.what} ({describe_not_compared(item.why)})"


def not_enough_sentence(
    outcome: Outcome, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> str:
    """What is missing, what can be seen now, and the cheapest next step."""
    missing = {
        "no_candidate": f"{candidate} has not reported a call yet.",
        "silent": f"{candidate} has been silent since "
        f"{say_minute(outcome.last_candidate_minute or outcome.minute)}.",
        "warming_up": f"The instances of {candidate} are in their first "
        f"5{SPACE}min, which are left out.",
        "no_baseline": f"{baseline} did not run beside {candidate}, nor in the day before it.",
        "one_after_the_other": f"{candidate} started after {baseline} had ended, "
        f"and no call of {baseline} a day "
        "before can be compared.",
        "in_turn": f"{candidate} and {baseline} are called in turn, "
        f"hardly ever within 5{SPACE}min of "
        "each other: nothing can be compared.",
        "no_common_host": f"{candidate} started after {baseline} had ended, "
        f"on no host where {baseline} ran "
        f"for 3{SPACE}h.",
        "no_longer_compared": f"Nothing of {candidate} was compared with {baseline} since "
        f"{say_minute(outcome.last_compared_minute or 0)}.",
        "no_common_stratum": f"{candidate} and {baseline} share no stratum and shape bucket.",
        "too_few_calls": f"No instance of {candidate} and {baseline} made "
        "20 calls of one shape within an "
        "hour.",
        "one_sided": f"{candidate} and {baseline} do not both report how long their calls take.",
        "bucket_too_wide": f"How long calls of {candidate} and {baseline} "
        "take lies in buckets of the engine "
        "that are wider than the "
        "difference. The agent in the engine's processes measures it.",
        "muted": "Every metric that could be compared is muted in the settings: nothing is left to "
        "judge.",
        "too_short": f"Only {format_minutes(outcome.compared_minutes)} compared with "
        f"{baseline} so far.",
    }.get(outcome.reason)
    if missing is None:
        sees = (
            f"A change under {magnitude(outcome.smallest_visible)} cannot be seen yet"
            if outcome.smallest_visible
            else "No clear answer yet"
        )
        look = (
            f"; next look at {say_minute(outcome.next_look)}"
            if outcome.next_look is not None
            else ""
        )
        side = "beside" if outcome.layouts[:1] in ((), ("side_by_side",)) else "against"
        missing = f"{sees} {side} {describe_baseline(baseline, outcome.layouts).rstrip(',')}{look}."
        missing += not_judged_phrases(outcome, ("one_sided", "bucket_too_wide"))
    step = next_step_phrase(outcome.next_step) if outcome.next_step else ""
    return f"{missing} {step}".rstrip() + adoption(outcome, candidate)


def adoption(outcome: Outcome, candidate: str) -> str:
    """Named where a version has so little of the traffic that few would notice it."""
    return (
        f" {candidate} has a low adoption: {percent(outcome.adoption or 0.0)} of calls."
        if outcome.low_adoption
        else ""
    )


def next_step_phrase(step: NextStep) -> str:
    """The cheapest step, as advice."""
    if step.kind == "add_instances":
        visible = (
            f": smallest visible change {magnitude(step.visible)}"
            if step.visible is not None
            else ""
        )
        return f"{step.count} more {step.arm} instances on {step.stratum}{visible}."
    if step.kind == "run_side_by_side":
        where = f" on {step.stratum}" if step.stratum else ""
        return f"Keep a baseline instance running{where} beside it for an hour."
    if step.kind == "add_traffic":
        return f"Send each instance at least {step.count} calls an hour."
    return f"Wait {format_minutes(step.minutes)}."


def interval(row: Evidence, worse: bool) -> str:
    """The interval in the direction of the sentence."""
    low, high = orient_change(row.low or 0.0, row.worse), orient_change(row.high or 0.0, row.worse)
    low, high = (low, high) if worse else (-high, -low)
    return change_range(low, high)
