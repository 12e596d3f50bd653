"""Bad and missing input: a stated result with its reason, never a crash, and never HEALTHY from
silence."""

import json
from dataclasses import replace

import pytest

from dashboard.regressions.judge import PRODUCTION, Comparison, Outcome, judge
from dashboard.regressions.judge.text.not_enough import not_enough_sentence
from tests.dashboard.regressions.fleets import every_minute, instance


def outcome_of_rows(*rows, minutes: int = 120, now: int | None = None) -> Outcome:
    outcome = judge(
        list(every_minute(rows, minutes)),
        now_minute=now if now is not None else minutes,
        deployed_minute=0,
    )
    json.dumps(outcome.as_dict(), allow_nan=False)
    return outcome


PAIR = (instance("b1"), instance("c1"))
UNDECIDED = [
    ("no_candidate", []),
    ("no_candidate", [instance("b1")]),
    ("no_candidate", [instance("b1"), instance("c1", calls=0)]),
    ("no_baseline", [instance("c1")]),
    ("no_common_stratum", [instance("b1"), instance("c1", stratum="L40S")]),
    ("no_common_stratum", [instance("b1"), instance("c1", bucket="2^20")]),
    ("one_sided", [instance("b1"), instance("c1", p50=None)]),
    ("one_sided", [instance("b1", p50=None), instance("c1", p50=None)]),
    ("one_sided", [instance("b1"), instance("c1", p50=0.0)]),
    ("one_sided", [instance("b1"), instance("c1", p50=float("nan"))]),
    ("one_sided", [instance("b1"), instance("c1", p50=float("inf"))]),
]


@pytest.mark.parametrize(("reason", "rows"), UNDECIDED)
def test_missing_data_is_named(reason: str, rows: list):
    outcome = outcome_of_rows(*rows)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", reason)


def test_too_few_calls_for_any_bin_is_named():
    rows = [
        row
        for row in every_minute([instance("b1", calls=1), instance("c1", calls=1)], 240)
        if row.minute % 10 == 0
    ]
    outcome = judge(rows, now_minute=240, deployed_minute=0)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "too_few_calls")
    assert outcome.not_compared[0].why == "too_few_calls"
    assert outcome.next_step is not None
    assert outcome.next_step.kind == "add_traffic"


def test_the_first_minutes_of_an_instance_are_left_out():
    outcome = outcome_of_rows(instance("b1"), instance("c1", first_minute=0), minutes=5)
    assert outcome.reason == "warming_up"
    assert (
        outcome_of_rows(instance("b1"), instance("c1", first_minute=0), minutes=25).compared_minutes
        == 20
    )


def test_the_excluded_minutes_are_those_of_the_settings():
    settings = replace(PRODUCTION, warm_up_minutes=20)
    rows = list(every_minute([instance("b1"), instance("c1", first_minute=0)], 10))
    outcome = judge(rows, now_minute=10, deployed_minute=0, settings=settings)
    assert outcome.warm_up is not None
    assert (outcome.reason, outcome.warm_up.minutes) == ("warming_up", 20)
    said = not_enough_sentence(outcome, "v2", "v1", str).replace("\u00a0", " ")
    assert said == (
        "Instances of v2 are warming up; their first 20 min are excluded. "
        f"Wait {20 + PRODUCTION.instance_minutes} min."
    )


@pytest.mark.parametrize(
    ("pause", "reason", "why"),
    [
        (30, "no_common_host", "no_baseline_on_host"),
        (1600, "no_baseline", "no_baseline_in_stratum"),
    ],
)
def test_a_short_or_old_past_of_other_hosts_is_not_compared(pause: int, reason: str, why: str):
    hosts = [instance("b1", host="a"), instance("c1", host="b")]
    deployed = 170 + pause
    rows = [
        *every_minute([hosts[0]], 170),
        *every_minute([replace(hosts[1], first_minute=deployed - 60)], 60, start=deployed),
    ]
    outcome = judge(rows, now_minute=deployed + 60, deployed_minute=deployed)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", reason)
    assert [item.why for item in outcome.not_compared] == [why]
    assert outcome.next_step is not None
    assert outcome.next_step.kind == "run_side_by_side"


@pytest.mark.parametrize(("block", "pause"), [(7, 6), (10, 0), (10, 6), (30, 0), (60, 6)])
def test_versions_that_receive_traffic_in_turn_are_reported_as_such(block: int, pause: int):
    """Minutes more than 5 minutes apart are not compared. The reason is neither a lack of calls nor
    a warm-up that ends with waiting."""
    fleet = every_minute([replace(one, host=one.instance) for one in PAIR], 600)
    rows = [
        row
        for row in fleet
        if row.minute // block % 2 == (row.arm == "candidate") and row.minute % block >= pause
    ]
    outcome = judge(rows, now_minute=600, deployed_minute=0)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "in_turn")
    assert outcome.next_step is not None and outcome.next_step.kind == "run_side_by_side"
    assert "rarely receive traffic within the same" in not_enough_sentence(outcome, "v2", "v1", str)


def test_constant_values_on_one_instance_a_side_give_the_smallest_visible_change():
    outcome = outcome_of_rows(*PAIR)
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert (row.change, row.label, row.reason) == (
        pytest.approx(0.0),
        "NOT ENOUGH DATA",
        "too_wide",
    )
    assert outcome.smallest_visible == pytest.approx(row.smallest_visible)
    assert outcome.verdict == "not_enough_data"
    assert outcome.next_step is not None
    assert (outcome.next_step.kind, outcome.next_step.count) == ("add_instances", 2)
    assert outcome.held_by is not None
    assert outcome.next_step.visible < outcome.held_by.visible_90


def test_many_equal_instances_are_healthy_at_the_first_look_and_not_before():
    fleet = [instance(f"b{i}") for i in range(6)] + [instance(f"c{i}") for i in range(6)]
    assert outcome_of_rows(*fleet, minutes=59).verdict == "not_enough_data"
    outcome = outcome_of_rows(*fleet, minutes=60)
    assert (outcome.verdict, outcome.since, outcome.look) == ("healthy", 59, 60)
    assert 0.0 < outcome.bound < 0.10


def test_a_version_with_minutes_only_after_the_last_look_is_evaluated_with_enough_data():
    """The version was deployed before a quiet weekend, or its first days have expired when a worker
    restarts."""
    fleet = [instance(f"b{i}") for i in range(6)] + [instance(f"c{i}") for i in range(6)]
    rows = list(every_minute(fleet, 600, start=4000))
    before, last = PRODUCTION.looks[-2:]
    enough = 4000 + (last - before) // 2
    early = judge(rows, now_minute=enough - 1, deployed_minute=0)
    assert (early.verdict, early.next_look) == ("not_enough_data", None)
    outcome = judge(rows, now_minute=4600, deployed_minute=0)
    assert (outcome.verdict, outcome.look, outcome.since) == ("healthy", last, enough - 1)


def test_many_regions_with_constant_values_can_be_healthy():
    names = [f"{arm}{i}" for arm in "bc" for i in range(6)]
    fleet = [instance(name, region=f"expert {number}") for name in names for number in range(12)]
    outcome = outcome_of_rows(*fleet, minutes=60)
    assert (outcome.verdict, outcome.look) == ("healthy", 60)
    one_slower = [
        replace(row, p50=0.0108) if row.arm == "candidate" and row.region == "expert 7" else row
        for row in fleet
    ]
    assert outcome_of_rows(*one_slower, minutes=60).verdict == "not_enough_data"


def test_a_healthy_version_that_falls_silent_is_no_longer_healthy():
    fleet = [instance(f"b{i}") for i in range(6)] + [instance(f"c{i}") for i in range(6)]
    assert outcome_of_rows(*fleet, minutes=90, now=119).verdict == "healthy"
    outcome = outcome_of_rows(*fleet, minutes=90, now=121)
    assert (outcome.verdict, outcome.reason, outcome.last_candidate_minute) == (
        "not_enough_data",
        "silent",
        89,
    )
    assert outcome.transitions[-1] == (119, "not_enough_data")


def test_data_that_ended_long_before_a_look_does_not_decide_it():
    fleet = [instance(f"b{i}") for i in range(6)] + [instance(f"c{i}") for i in range(6)]
    rows = [
        *every_minute(fleet, 20),
        *every_minute([row for row in fleet if row.arm == "candidate"], 100, start=20),
    ]
    assert judge(rows, now_minute=120, deployed_minute=0).verdict == "not_enough_data"


def test_with_under_half_of_the_traffic_comparable_the_verdict_is_watch_and_names_the_rest():
    outcome = outcome_of_rows(
        instance("b1"), instance("c1"), instance("c2", stratum="L40S", calls=300)
    )
    assert outcome.verdict == "watch"
    assert outcome.comparable_share == pytest.approx(0.25)
    (left_out,) = outcome.not_compared
    assert (left_out.why, left_out.share) == ("no_baseline_in_stratum", 0.75)
    assert "L40S" in left_out.what


def test_a_full_rollout_after_the_canary_does_not_count_against_the_version():
    fleet = [instance(f"b{i}") for i in range(6)] + [instance(f"c{i}") for i in range(6)]
    rows = [
        *every_minute(fleet, 70),
        *every_minute([row for row in fleet if row.arm == "candidate"], 100, start=70),
    ]
    outcome = judge(rows, now_minute=170, deployed_minute=0)
    assert (outcome.verdict, outcome.comparable_share) == ("healthy", 1.0)
    assert {item.why for item in outcome.not_compared} == {
        "after_the_baseline_ended",
        "no_baseline_on_host",
    }


def test_an_instance_that_changes_its_gpu_or_its_version_counts_separately():
    outcome = outcome_of_rows(
        instance("b1"),
        instance("b1", stratum="A100"),
        instance("c1"),
        instance("c1", stratum="A100"),
        instance("c1", arm="baseline"),
    )
    row = next(row for row in outcome.evidence if row.metric == "p50")
    assert (row.baseline_instances, row.candidate_instances) == (3, 2)


def test_rows_from_a_clock_ahead_are_counted_and_ignored():
    rows = list(every_minute(PAIR, 120))
    outcome = judge(rows, now_minute=100, deployed_minute=0)
    assert (outcome.rows_ignored, outcome.last_candidate_minute) == (40, 99)


def test_minutes_out_of_order_are_refused_with_a_remedy():
    comparison = Comparison(0)
    comparison.add_minute(5, PAIR)
    with pytest.raises(ValueError, match="minute 5 comes after minute 5: replay"):
        comparison.add_minute(5, PAIR)
