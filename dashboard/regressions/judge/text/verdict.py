"""Verdict text: describes a verdict in one sentence. Names, times and a known cause come from the
caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dashboard.fleet.metrics.eager_causes import cause_sentence
from dashboard.regressions.judge.certain_facts import CertainFact, describe_fact
from dashboard.regressions.judge.inputs import Layout
from dashboard.regressions.judge.result import Evidence, NextStep, NotCompared, Outcome
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.text.drift import describe_drift
from dashboard.regressions.judge.text.runs import (
    describe_missing_proof,
    more_runs_phrase,
    name_baseline,
    run_reasons,
)
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
    "Intervals are corrected for the number of metrics and for the evaluation at each minute. "
    "They are calibrated on simulated fleets; their validity at every evaluation is not proven."
)

COUNTS_WITH_CAUSES = ("eager", "stalled")
"""Counts with a known cause."""
NO_ROLLBACK_ALONE = "not a reason to roll back on its own"
MOST_LEVELS = 2
MOST_MINOR = 3
LONG_AGO_MINUTES = 120
"""Minutes without a comparison after which HEALTHY states the last one."""
LAYOUT_PHRASES: dict[Layout, str] = {
    "side_by_side": "",
    "day_before": f" on the same hosts 24{SPACE}h earlier",
    "past_by_load": " on the same hosts earlier, adjusted for load,",
    "last_day": " on its last day",
    "run_against_run": "",
}


def describe_baseline(baseline: str, layouts: tuple[Layout, ...]) -> str:
    """The baseline, with place and time of its measurement if it did not run side by side."""
    return baseline + LAYOUT_PHRASES[layouts[0] if layouts else "side_by_side"]


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
    worst = magnitude(max(bounds.values(), default=0.0))
    baseline = name_baseline(outcome, baseline)
    against = describe_baseline(baseline, outcome.layouts).rstrip(",")
    sentence = (
        f"No regression above {worst} in {format_minutes(outcome.look or 0)} compared with "
        f"{against}{f': {each}' if len(bounds) > 1 else ''}."
    )
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


def not_judged_phrases(outcome: Outcome, reasons: Collection[str]) -> str:
    """Metrics that the verdict excludes for one of these reasons."""
    silent = [
        row
        for row in outcome.evidence
        if row.hard and row.judged and row.reason in reasons and row.label == "NOT ENOUGH DATA"
    ]
    return "".join(
        f" {capitalize(find_metric(row.metric).phrase)} is not evaluated: {UNDECIDED[row.reason]}."
        for row in silent
    )


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
    if any(row.drives for row in outcome.evidence) or not wrong:
        said.insert(0, drivers_phrase(outcome, baseline, say_minute, cause))
    elif wrong.kind == "stalled_calls" and cause:
        said.append(cause)
    return "; ".join(said)


def certain_phrase(
    fact: CertainFact, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> str:
    """A confirmed fact with place and start, and the baseline's result."""
    said = (
        f"{describe_fact(fact)}, on {plural_instances(fact)} of {candidate} since "
        f"{say_minute(fact.since)}"
    )
    if fact.kind == "stalled_calls":
        return f"{said}{baseline_stalls_phrase(fact, baseline)}"
    if fact.kind == "compiled_nothing" and not fact.on_baseline:
        if fact.baseline_silent:
            return f"{said}; not comparable with {baseline}: agent versions differ"
        served = "ran it compiled" if fact.passed_on_baseline else "ran no call of it compiled"
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
        f"passed on {fact.passed_on_baseline} of {baseline}"
        if fact.passed_on_baseline
        else f"not checked on {baseline}"
    )
    return f"{said}{others}; {before}"


def baseline_stalls_phrase(fact: CertainFact, baseline: str) -> str:
    """The baseline's stalled calls beyond the budget."""
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
    baseline = name_baseline(outcome, baseline)
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
    # Eager and stalled calls come last, because the known cause explains them.
    explained = any(row.metric in COUNTS_WITH_CAUSES for row in counts)
    return "; ".join(parts) + (
        f": {known}" if known and explained else f"; {known}" if known else ""
    )


def is_count(row: Evidence) -> bool:
    """True if a row is described as a share or rate, even if its change is known."""
    return row.change is None or row.unit == "share"


def level_phrase(
    row: Evidence, baseline: str, say_minute: Callable[[int], str], several: bool
) -> str:
    """A level compared with the baseline, with its interval and the affected instances."""
    metric = find_metric(row.metric)
    change = row.change or 0.0
    if row.metric == "leak":
        more = (
            f"{percent(change)} ({interval(row, True)}) more than on "
            f"{describe_baseline(baseline, row.layouts)}"
        )
        return (
            f"GPU memory grows by {percent(row.candidate or 0.0)} per hour, {more}, on "
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
    """The share of calls that a count covers, or its rate per hour."""
    value = row.candidate or 0.0
    said = number(value) if row.unit == "per hour" else percent(value)
    return f"{said} {find_metric(row.metric).predicate or f'of calls: {row.metric}'}"


def baseline_phrase(row: Evidence, baseline: str) -> str:
    """The baseline's share or rate of the same count."""
    if row.unit == "per hour":
        return f"{number(row.baseline)} on {baseline}" if row.baseline else f"none on {baseline}"
    return f"{percent(row.baseline)} on {baseline}" if row.baseline else f"none on {baseline}"


def since_phrase(row: Evidence, say_minute: Callable[[int], str]) -> str:
    """The start of a regression, if known."""
    return f" since {say_minute(row.since)}" if row.since is not None else ""


def instances_phrase(row: Evidence) -> str:
    """The number of affected candidate instances."""
    count, total = row.affected_instances, row.candidate_instances
    unit = "host" if row.layouts[:1] in (("day_before",), ("past_by_load",)) else "instance"
    unit = "run" if row.layouts[:1] == ("run_against_run",) else unit
    if count == total:
        return f"its only {unit}" if total == 1 else f"all {total} {unit}s"
    return f"{count} of {total} {unit}s" if count else f"average over {total} {unit}s"


def find_main_cause(row: Evidence) -> str | None:
    """The most frequent cause in the agents' counts; an unknown cause is not guessed."""
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
    """The change, with the reason against ROLL BACK; or the low share of comparable calls."""
    driving = [row for row in outcome.evidence if row.drives]
    if driving:
        hard = [row for row in driving if row.hard]
        so = "more evidence is needed to roll back" if hard else NO_ROLLBACK_ALONE
        if hard and all(row.alone for row in hard):
            so = "one instance accounts for nearly all of it: check its host first"
        so = (describe_missing_proof(outcome) or so) if hard else so
        return f"{drivers_phrase(outcome, baseline, say_minute, cause)}; {so}."
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


def drift_phrase(
    found: Sequence[SelfDrift], candidate: str, say_minute: Callable[[int], str]
) -> str:
    """The drift of a version and its start; of several regions, the one that changed most."""
    worst = max(found, key=lambda one: one.change)
    return f"{candidate} is drifting: {describe_drift(worst)}, since {say_minute(worst.since)}"


def first_version_sentence(
    fact: CertainFact, *, candidate: str, say_minute: Callable[[int], str], cause: str = ""
) -> str:
    """A confirmed fact of a version without a baseline."""
    why = f"; {cause}" if cause else ""
    return capitalize(
        f"{describe_fact(fact)}, on {plural_instances(fact)} of {candidate} since "
        f"{say_minute(fact.since)}{why}."
    )


def plural_instances(fact: CertainFact) -> str:
    """The number of instances of a confirmed fact, with their names if they matter."""
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
    """The calls or metric that were not compared, and the reason."""
    return f"{item.what} ({describe_not_compared(item.why)})"


def not_enough_sentence(
    outcome: Outcome, candidate: str, baseline: str, say_minute: Callable[[int], str]
) -> str:
    """The missing data, the detectable change, and the cheapest next step."""
    baseline = name_baseline(outcome, baseline)
    missing = {
        **run_reasons(outcome, candidate),
        "no_candidate": f"{candidate} has not reported a call yet.",
        "silent": f"{candidate} has been silent since "
        f"{say_minute(outcome.last_candidate_minute or outcome.minute)}.",
        "warming_up": f"Instances of {candidate} are warming up; their first 5{SPACE}min are "
        "excluded.",
        "no_baseline": f"{baseline} had no traffic alongside {candidate} or in the preceding "
        f"24{SPACE}h.",
        "one_after_the_other": f"{candidate} started after {baseline} had ended, and {baseline} "
        f"has no comparable calls 24{SPACE}h earlier.",
        "in_turn": f"{candidate} and {baseline} rarely receive traffic within the same "
        f"5{SPACE}min, so they cannot be compared.",
        "no_common_host": f"{candidate} started after {baseline} had ended, on no host where "
        f"{baseline} had run for 3{SPACE}h.",
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
    }.get(outcome.reason)
    if missing is None:
        sees = (
            f"Changes below {magnitude(outcome.smallest_visible)} cannot be detected yet"
            if outcome.smallest_visible
            else "No clear result yet"
        )
        look = (
            f"; next check at {say_minute(outcome.next_look)}"
            if outcome.next_look is not None
            else ""
        )
        against = describe_baseline(baseline, outcome.layouts).rstrip(",")
        missing = f"{sees} compared with {against}{look}."
        missing += not_judged_phrases(outcome, ("one_sided", "bucket_too_wide"))
    step = next_step_phrase(outcome.next_step) if outcome.next_step else ""
    return f"{missing} {step}".rstrip() + adoption(outcome, candidate)


def adoption(outcome: Outcome, candidate: str) -> str:
    """A note on a version with very little traffic."""
    return (
        f" Low traffic: {candidate} serves {percent(outcome.adoption or 0.0)} of calls."
        if outcome.low_adoption
        else ""
    )


def next_step_phrase(step: NextStep) -> str:
    """The cheapest step, as advice."""
    if step.kind == "add_instances":
        visible = (
            f" to detect changes down to {magnitude(step.visible)}"
            if step.visible is not None
            else ""
        )
        return f"Add {step.count} {step.arm} instances on {step.stratum}{visible}."
    if step.kind == "add_runs":
        return more_runs_phrase(step)
    if step.kind == "run_side_by_side":
        where = f" on {step.stratum}" if step.stratum else ""
        return f"Keep a baseline instance running{where} alongside the candidate for an hour."
    if step.kind == "add_traffic":
        return f"Send each instance at least {step.count} calls per hour."
    return f"Wait {format_minutes(step.minutes)}."


def interval(row: Evidence, worse: bool) -> str:
    """The interval in the direction of the sentence."""
    low, high = orient_change(row.low or 0.0, row.worse), orient_change(row.high or 0.0, row.worse)
    low, high = (low, high) if worse else (-high, -low)
    return change_range(low, high)
