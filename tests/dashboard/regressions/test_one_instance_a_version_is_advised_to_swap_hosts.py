"""With one instance of each version on two hosts, the advice is to swap the versions."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge import InstanceMinute, judge
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of

ADVICE = (
    " Swap the versions between the two hosts for 1 h each: this removes the difference between "
    "the hosts."
)


def test_not_enough_data_advises_a_swap() -> None:
    outcome = judged([instance("b1", host="h1"), instance("c1", host="h2")], 70)
    assert outcome.next_step is not None
    assert (outcome.next_step.kind, outcome.next_step.minutes) == ("swap_hosts", 60)
    assert sentence_of(outcome).endswith(ADVICE + " Next check at 12:00.")


def test_watch_advises_a_swap() -> None:
    rows = [instance("b1", host="h1"), instance("c1", host="h2", p50=0.0132)]
    outcome = judged(rows, 60)
    assert (outcome.verdict, outcome.next_step and outcome.next_step.kind) == (
        "watch",
        "swap_hosts",
    )
    assert sentence_of(outcome).endswith("more evidence is needed to roll back." + ADVICE)


def slower(name: str, **changes: str) -> InstanceMinute:
    """A slower instance: time alone does not lead to HEALTHY."""
    return instance(name, p50=0.0105, **changes)


@pytest.mark.parametrize(
    "rows",
    [
        [instance("b1", host="h1"), slower("c1", host="h1")],
        [instance("b1"), slower("c1")],
        [instance("b1", host="h1"), slower("c1", host="h2"), slower("c2", host="h3")],
    ],
    ids=["one host", "unknown hosts", "two candidates"],
)
def test_nothing_else_is_swapped(rows: list) -> None:
    outcome = judged(rows, 70)
    assert outcome.next_step is not None and outcome.next_step.kind == "add_instances"


def test_after_the_swap_the_comparison_has_two_instances_of_each_version() -> None:
    before = [instance("b1", host="h1"), instance("c1", host="h2")]
    after = [instance("b2", host="h2"), instance("c2", host="h1")]
    rows = [*every_minute(before, 60), *every_minute(after, 60, start=60)]
    outcome = judge(rows, now_minute=120, deployed_minute=0)
    assert outcome.next_step is None or outcome.next_step.kind != "swap_hosts"
