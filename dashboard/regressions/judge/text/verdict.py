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
    limit_phrase,
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
    environment: str = "",
) -> str:
    """The verdict with size, baseline, place and start of a change; `say_minute` formats an epoch
    minute. `environment` is named if the model runs in several."""
    over = ended_phrases(outcome, say_minute)
    where = f"In {environment}: " if environment else ""
    if outcome.verdict == "roll_back":
        off = outcome.last_candidate_minute if outcome.reason == "silent" else None
        done = (
            f" No traffic since {say_minute(off)}; the evidence is from before."
            if off is not None
            else ""
        )
        place = f" in {environment}" if environment else ""
        return (
            f"Roll back {candidate}{place}: "
            f"{roll_back_phrase(outcome, candidate, baseline, say_minute, cause)}.{done}{over}"
        )
    if outcome.verdict == "watch":
        said = capitalize(watch_sentence(outcome, candidate, baseline, say_minute, cause))
    elif outcome.verdict == "healthy":
        said = healthy_sentence(outcome, baseline, say_minute)
    else:
        said = not_enough_sentence(outcome, candidate, baseline, say_minute)
    note = adoption(outcome, candidate) if outcome.verdict == "healthy" else ""
    return f"{where}{said}{over}{note}"


def ended_phrases(outcome: Outcome, say_minute: Callable[[int], str]) -> str:
    """Regions without traffic on which a ROLL BACK was based, one sentence each."""
    return "".join(
        f" Region `{name}`, flagged for rollback, has had no traffic since {say_minute(at)}."
        for name, at in outcome.ended
    )


def healthy_sentence(outcome: Outcome, baseline: str, say_minute: Callable[[int], str]) -> str:
    """The changes that are ruled out, by metric, and the metrics without a result."""
    above, each = bounds_phrases(outcome)
    baseline = name_baseline(outcome, baseline)
    against = describe_baseline(baseline, outcome.layouts).rstrip(",")
    better = improvement_sentence(outcome.evidence, baseline)
    sentence = (
        f"{better} No regression{above} in {format_minutes(outcome.look or 0)} compared with "
        f"{against}{each}."
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


def bounds_phrases(outcome: Outcome) -> tuple[str, str]:
    """` above 4% (limit 10%)` of one metric; of several, the largest bound and ` (95% bounds: p50
    3%, limit 10%; p99 4%, limit 20%)`."""
    rows = {row.metric: row for row in outcome.evidence}
    bounds, limits = {}, {}
    for name, bound in outcome.bounds.items():
        row = rows.get(name)
        worse = row.worse if row else 1
        bounds[name] = magnitude(orient_change(max(bound, 0.0), worse))
        limits[name] = limit_phrase(row.tolerated, worse) if row and row.tolerated else ""
    worst = max(outcome.bounds, key=lambda name: outcome.bounds[name], default="")
    if not worst or outcome.bounds[worst] <= 0.0:
        return "", ""
    if len(bounds) == 1:
        limit = limits[worst]
        return f" above {bounds[worst]}{f' ({limit})' if limit else ''}", ""
    each = "; ".join(
        ", ".join(filter(None, (f"{find_metric(name).phrase} {bounds[name]}", limits[name])))
        for name in bounds
        if find_metric(name).kind in ("latency", "level")
    )
    return f" above {bounds[worst]}", f" (95% bounds: {each})"


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
            so = f"{name_instance(far)} alone is {size_of_outlier(far)}: check its host first"
        elif hard and all(row.alone for row in hard):
            so = f"{name_instance(hard[0])} accounts for nearly all of it: check its host first"
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


def name_instance(row: Evidence) -> str:
    """`instance c3 on host h7`: the instance to check; without a host if it is unknown."""
    if not row.odd_instance:
        return "one instance"
    host = f" on host {row.odd_host}" if row.odd_host not in ("", row.odd_instance) else ""
    return f"instance {row.odd_instance}{host}"


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
