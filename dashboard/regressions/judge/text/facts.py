"""Fact text: describes confirmed facts with their place, start and the baseline's result."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.regressions.judge.certain_facts import CertainFact, describe_fact
from dashboard.regressions.judge.text.sentences import capitalize


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
