"""Without a baseline in the same minutes, failed calls count if they last longer than the bursts of
the baseline's past explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dashboard.regressions.judge import InstanceMinute, Outcome, judge
from tests.dashboard.regressions.fleets import ROW

DAY = 1440


def rows(storms: list[range], failing: range) -> Iterator[InstanceMinute]:
    """Four hosts change their version at minute 0. The baseline has storms, the candidate fails."""
    for minute in range(-DAY, 200):
        arm = "baseline" if minute < 0 else "candidate"
        bad = any(minute in storm for storm in storms) or minute in failing
        for host in range(4):
            yield replace(
                ROW,
                instance=f"{arm[0]}{host}",
                unit=f"{arm[0]}{host}",
                host=f"h{host}",
                arm=arm,
                minute=minute,
                first_minute=-DAY if minute < 0 else 0,
                errors=10 if bad else 0,
            )


def outcome_of(storms: list[range], failing: range) -> Outcome:
    return judge(rows(storms, failing), now_minute=200, deployed_minute=0)


def worst(outcome: Outcome) -> set[str]:
    return {verdict for _, verdict in outcome.transitions} & {"watch", "roll_back"}


STORM = [range(-700, -672)]


def test_a_storm_of_the_usual_length_raises_nothing() -> None:
    assert not worst(outcome_of(STORM, range(100, 130)))


def test_without_storms_in_the_past_the_same_minutes_are_watched() -> None:
    assert worst(outcome_of([], range(100, 130)))


def test_failures_that_do_not_end_are_found() -> None:
    assert worst(outcome_of(STORM, range(100, 200)))
