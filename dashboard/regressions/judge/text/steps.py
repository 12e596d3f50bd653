"""Step text: describes the next step as advice."""

from __future__ import annotations

from typing import Protocol

from dashboard.vocabulary.numbers import format_minutes, magnitude, plural


class StepLike(Protocol):
    """Input of the text: a step of the judge, or a stored one."""

    @property
    def kind(self) -> str: ...
    @property
    def arm(self) -> str: ...
    @property
    def stratum(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def visible(self) -> float | None: ...
    @property
    def minutes(self) -> int: ...


def more_runs_phrase(step: StepLike) -> str:
    """The runs that are missing, or what one more run would show."""
    if step.arm == "baseline":
        return f"{plural(step.count, 'more run')} {'is' if step.count == 1 else 'are'} needed."
    visible = f"changes down to {magnitude(step.visible)}" if step.visible else "smaller changes"
    return f"One more run detects {visible}."


def next_step_phrase(step: StepLike, cohort: str = "") -> str:
    """The cheapest step, as advice; empty for a step that this release does not know. `cohort` is a
    shorter name of its stratum."""
    where = f" on {cohort or step.stratum}" if step.stratum else ""
    if step.kind == "add_instances":
        visible = (
            f" to detect a regression of {magnitude(step.visible)}"
            if step.visible is not None
            else ""
        )
        return f"Add {step.count} {step.arm} instances{where}{visible}."
    if step.kind == "run_side_by_side":
        return f"Keep a baseline instance running{where} alongside the candidate for an hour."
    if step.kind == "add_traffic":
        per = "minute" if step.minutes == 1 else "hour"
        return f"Send each instance at least {step.count} calls per {per}."
    if step.kind == "swap_hosts":
        return (
            f"Swap the versions between the two hosts for {format_minutes(step.minutes)} each: "
            "this removes the difference between the hosts."
        )
    if step.kind == "add_runs":
        return more_runs_phrase(step)
    return f"Wait {format_minutes(step.minutes)}." if step.kind == "wait" else ""
