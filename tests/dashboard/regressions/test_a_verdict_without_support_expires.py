"""End of verdicts: HEALTHY without a concurrent baseline and ROLL BACK on calls that ended are
withdrawn with the reason; excluded regions are named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from dashboard.regressions.judge import InstanceMinute, Outcome, Settings, judge
from dashboard.regressions.judge.level_reading import WATCH_SETTLE
from dashboard.regressions.judge.text.verdict import verdict_sentence
from dashboard.regressions.judge.verdict_policy import LEAST_HOLD_MINUTES
from tests.dashboard.regressions.fleets import every_minute, instance

NAMES = ("b0", "b1", "b2", "c0", "c1", "c2")


def rows(minutes: range, **changes: object) -> list[InstanceMinute]:
    """All six instances in each of these minutes."""
    return [
        replace(row, **changes)
        for row in every_minute([instance(name) for name in NAMES], len(minutes), minutes.start)
    ]  # type: ignore[arg-type]


def of(arm: str, found: Iterable[InstanceMinute]) -> list[InstanceMinute]:
    return [row for row in found if row.arm == arm]


def sentence_of(outcome: Outcome) -> str:
    return verdict_sentence(
        outcome, candidate="new", baseline="old", say_minute=lambda minute: f"minute {minute}"
    )


def moved(minutes: range) -> list[InstanceMinute]:
    """Both versions continue, but the candidate runs on another kind of GPU."""
    return (
        rows(range(70))
        + of("baseline", rows(minutes))
        + of("candidate", rows(minutes, stratum="B200"))
    )


@pytest.mark.parametrize(("until", "verdict"), [(180, "healthy"), (192, "not_enough_data")])
def test_healthy_ends_when_the_version_has_no_concurrent_baseline_left(until: int, verdict: str):
    settings = Settings(comparable_share=0.0)
    outcome = judge(moved(range(70, until)), now_minute=until, deployed_minute=0, settings=settings)
    assert outcome.verdict == verdict
    if verdict != "healthy":
        assert outcome.reason == "no_longer_compared"
        assert outcome.next_step is not None
        assert outcome.next_step.kind == "run_side_by_side"
        assert sentence_of(outcome).startswith(
            "HEALTHY until minute 189. No calls of new have been compared with old since minute 69. "
            "Keep a baseline instance running"
        )


@pytest.mark.parametrize(("until", "verdict"), [(359, "healthy"), (360, "not_enough_data")])
def test_healthy_remains_until_the_next_look_after_the_baseline_ended(until: int, verdict: str):
    outcome = judge(
        rows(range(190)) + of("candidate", rows(range(190, until))),
        now_minute=until,
        deployed_minute=0,
    )
    assert outcome.verdict == verdict
    assert sentence_of(outcome).startswith(
        "HEALTHY until minute 359. No calls of new have been compared"
        if verdict != "healthy"
        else "No regression above"
    )


def test_healthy_of_the_last_look_remains_after_the_baseline_ended_and_names_the_minute():
    settings = Settings(looks=(60,))
    calls = rows(range(70)) + of("candidate", rows(range(70, 300)))
    outcome = judge(calls, now_minute=300, deployed_minute=0, settings=settings)
    assert outcome.verdict == "healthy"
    assert sentence_of(outcome).endswith("No calls have been compared since minute 69.")


def slower(found: Iterable[InstanceMinute], region: str) -> list[InstanceMinute]:
    return [
        replace(row, region=region, p50=(row.p50 or 0.0) * (1.5 if row.arm == "candidate" else 1.0))
        for row in found
    ]


def test_a_roll_back_on_a_region_that_is_no_longer_called_ends_with_the_reason():
    calls = rows(range(240)) + slower(rows(range(60)), "rerank")
    during = judge(calls, now_minute=140, deployed_minute=0)
    assert (during.verdict, during.ended) == ("roll_back", ())
    after = judge(calls, now_minute=170, deployed_minute=0)
    assert (after.verdict, after.ended) == ("not_enough_data", (("rerank", 59),))
    assert sentence_of(after).endswith(
        "Region `rerank`, flagged for rollback, has had no traffic since minute 59."
    )
    assert {row.reason for row in after.evidence if row.region == "rerank"} == {"not_called"}
    assert not any(row.drives for row in after.evidence)


def test_a_region_that_is_called_again_and_still_slow_is_a_roll_back_again():
    calls = (
        rows(range(300))
        + slower(rows(range(60)), "rerank")
        + slower(rows(range(160, 300)), "rerank")
    )
    outcome = judge(calls, now_minute=300, deployed_minute=0)
    kinds = [verdict for _, verdict in outcome.transitions if verdict != "watch"]
    assert kinds[-3:] == ["roll_back", "not_enough_data", "roll_back"]
    assert outcome.ended == ()


def test_a_roll_back_of_a_version_without_traffic_is_marked_as_past():
    calls = slower(rows(range(60)), "forward") + of("baseline", rows(range(60, 120)))
    outcome = judge(calls, now_minute=120, deployed_minute=0)
    assert outcome.verdict == "roll_back"
    assert sentence_of(outcome).endswith("No traffic since minute 59; the evidence is from before.")


def test_regions_that_are_too_small_for_the_bound_are_named():
    calls = rows(range(70), calls=600) + rows(range(70), region="rare", calls=30)
    outcome = judge(calls, now_minute=70, deployed_minute=0)
    assert (outcome.verdict, outcome.minor) == ("healthy", ("rare",))
    assert "Excluded (too few calls): `rare`." in sentence_of(outcome)


def test_versions_that_receive_traffic_in_turn_are_compared():
    calls = [
        row
        for row in slower(rows(range(90)), "forward")
        if (row.minute % 2 == 0) == (row.arm == "baseline")
    ]
    outcome = judge(calls, now_minute=90, deployed_minute=0)
    assert outcome.verdict == "roll_back"
    (p50,) = [row for row in outcome.evidence if row.metric == "p50"]
    assert p50.change == pytest.approx(0.5)
    assert p50.matched_minutes >= 70


def test_calls_that_are_too_far_apart_in_time_are_not_compared():
    calls = [
        row
        for row in slower(rows(range(120)), "forward")
        if (row.minute // 10 % 2 == 0) == (row.arm == "baseline")
    ]
    outcome = judge(calls, now_minute=120, deployed_minute=0)
    assert outcome.verdict == "not_enough_data"
    assert not any(row.matched_minutes for row in outcome.evidence if row.metric == "p50")


def test_one_of_several_instances_is_no_reason_to_roll_back():
    """Two kinds of GPU with a candidate on each: one candidate is half as slow again, as a busy
    neighbour slows down a host."""
    on = {
        "b0": "H100",
        "b1": "H100",
        "b2": "H100",
        "c0": "H100",
        "b3": "A100",
        "b4": "A100",
        "b5": "A100",
        "c1": "A100",
    }
    calls = list(every_minute([instance(name, stratum=gpu) for name, gpu in on.items()], 90))
    one = [
        replace(row, p50=(row.p50 or 0.0) * 1.5) if row.instance == "c0" else row for row in calls
    ]
    outcome = judge(one, now_minute=90, deployed_minute=0)
    assert outcome.verdict == "watch"
    assert "instance c0 alone is 50% slower: check its host first" in sentence_of(outcome)
    both = [
        replace(row, p50=(row.p50 or 0.0) * 1.3) if row.instance == "c1" else row for row in one
    ]
    assert judge(both, now_minute=90, deployed_minute=0).verdict == "roll_back"
    only = [row for row in one if row.stratum == "H100"]
    assert judge(only, now_minute=90, deployed_minute=0).verdict == "roll_back"


def test_the_only_instance_waits_until_a_busy_neighbour_is_gone():
    names = ["b0", "b1", "b2", "c0"]
    calls = list(every_minute([instance(name) for name in names], 90))
    slow = [
        replace(row, p50=(row.p50 or 0.0) * 1.5) if row.instance == "c0" else row for row in calls
    ]
    lone = Settings().lone_minutes
    found = judge(slow, now_minute=90, deployed_minute=0)
    assert found.verdict == "roll_back"
    # A change of ten times the smallest effect has the shortest hold time.
    assert found.transitions[1:] == (
        (lone - 1, "watch"),
        (lone - 1 + LEAST_HOLD_MINUTES - 1, "roll_back"),
    )
    busy = [slowed if slowed.minute < 22 else row for row, slowed in zip(calls, slow, strict=True)]
    assert "roll_back" not in [
        kind for _, kind in judge(busy, now_minute=90, deployed_minute=0).transitions
    ]
    at_once = judge(busy, now_minute=90, deployed_minute=0, settings=Settings(lone_minutes=0))
    assert "roll_back" in [kind for _, kind in at_once.transitions]
    two = [*slow, *(replace(row, instance="c1", unit="c1") for row in slow if row.instance == "c0")]
    early = judge([row for row in two if row.minute < 30], now_minute=30, deployed_minute=0)
    assert early.verdict == "roll_back"


def test_a_change_on_one_instance_has_to_last_before_watch():
    """Otherwise a neighbour that is busy for 20 minutes is WATCH until the mean has recovered."""
    names = ["b0", "b1", "b2", "c0"]
    calls = list(every_minute([instance(name) for name in names], 90))
    busy = [
        replace(row, p50=(row.p50 or 0.0) * 1.5)
        if row.instance == "c0" and row.minute < 20
        else row
        for row in calls
    ]
    assert [kind for _, kind in judge(busy, now_minute=90, deployed_minute=0).transitions] == [
        "not_enough_data"
    ]
    at_once = judge(busy, now_minute=90, deployed_minute=0, settings=Settings(narrow_minutes=0))
    assert "watch" in [kind for _, kind in at_once.transitions]
    slow = [
        replace(row, p50=(row.p50 or 0.0) * 1.5) if row.instance == "c0" else row for row in calls
    ]
    leans_from, narrow = WATCH_SETTLE[0] - 1, Settings().narrow_minutes
    # After `lone_minutes`, a busy neighbour is gone.
    first = min(leans_from + narrow, Settings().lone_minutes) - 1
    assert (first, "watch") in judge(slow, now_minute=90, deployed_minute=0).transitions
    careful = Settings(lone_minutes=90)
    assert (leans_from + narrow - 1, "watch") in judge(
        slow, now_minute=90, deployed_minute=0, settings=careful
    ).transitions
    two = [*slow, *(replace(row, instance="c1", unit="c1") for row in slow if row.instance == "c0")]
    less = [replace(row, p50=0.0120) if row.arm == "candidate" else row for row in two]
    assert (leans_from + LEAST_HOLD_MINUTES - 1, "watch") in judge(
        less, now_minute=90, deployed_minute=0
    ).transitions


def test_dots_of_very_many_instances_are_drawn_evenly_and_the_rest_is_counted():
    names = [f"b{i}" for i in range(3)] + [f"c{i}" for i in range(250)]
    calls = every_minute(
        [instance(name, p50=0.010 * (1.0 + 0.0001 * number)) for number, name in enumerate(names)],
        25,
    )
    outcome = judge(calls, now_minute=25, deployed_minute=0)
    (p50,) = [row for row in outcome.evidence if row.metric == "p50"]
    values = sorted(dot.value for dot in p50.dots if dot.arm == "candidate")
    assert (len(values), p50.dots_left_out, p50.candidate_instances) == (100, 150, 250)
    assert values[0] == pytest.approx(0.010 * 1.0003)
    assert values[-1] == pytest.approx(0.010 * 1.0252)
    assert max(b - a for a, b in pairwise(values)) < 0.0001
