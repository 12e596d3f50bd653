"""Warm-up in a verdict: the excluded instance-minutes and calls of both versions, and the reason for
NOT ENOUGH DATA if most minutes are excluded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dashboard.regressions.evidence_reader import read_warm_up
from dashboard.regressions.judge import PRODUCTION, InstanceMinute, Outcome, judge
from dashboard.regressions.judge.text.verdict import not_enough_sentence
from dashboard.regressions.judge.young_minutes import ArmWarmUp, WarmUp
from dashboard.vocabulary.numbers import SPACE
from tests.dashboard.regressions.fleets import every_minute, instance

TWELVE = replace(PRODUCTION, warm_up_minutes=12, warm_up_source="learned", warm_up_processes=34)


def outcome_of(rows: list[InstanceMinute], minutes: int) -> Outcome:
    return judge(rows, now_minute=minutes, deployed_minute=0, settings=TWELVE)


def restarting(every: int, minutes: int) -> Iterator[InstanceMinute]:
    """A candidate that restarts, next to an old baseline."""
    pair = [instance("b1", host="a"), instance("c1", host="b")]
    for row in every_minute(pair, minutes):
        if row.arm == "baseline":
            yield row
        else:
            process, age = divmod(row.minute, every)
            yield replace(row, instance=f"c1.{process}", first_minute=row.minute - age)


def test_each_instance_counts_its_first_minutes_once_in_all_regions_and_buckets() -> None:
    young, old = instance("c1", first_minute=0), instance("b1")
    rows = [*every_minute([young, replace(young, bucket="2^20", calls=50), old], 60)]
    past = [*every_minute([replace(old, first_minute=-40)], 40, start=-40)]
    outcome = outcome_of([*past, *rows], 60)
    assert outcome.warm_up == WarmUp(
        12, "learned", 34, ArmWarmUp(0, 0, 60, 6000), ArmWarmUp(12, 12 * 150, 60, 60 * 150)
    )
    stored = read_warm_up(json.loads(json.dumps(outcome.as_dict())))
    assert stored is not None
    assert stored.source_said == f"learned from 34{SPACE}processes"
    assert stored.candidate.said == f"12{SPACE}instance-minutes and 1,800{SPACE}calls"
    assert (stored.candidate.share_said, stored.baseline.share_said) == ("20%", "0%")


def test_calls_inside_another_region_are_not_counted_twice() -> None:
    inner = instance("c1", first_minute=0, region="inner", outermost=False)
    rows = [instance("b1"), instance("c1", first_minute=0), inner]
    warm_up = outcome_of([*every_minute(rows, 30)], 30).warm_up
    assert warm_up is not None
    assert warm_up.candidate == ArmWarmUp(12, 1200, 30, 3000)


def test_rows_of_one_instance_with_different_first_minutes_count_in_any_order() -> None:
    young, old = instance("c1", first_minute=0), instance("c1", region="other", first_minute=-60)
    found = [
        outcome_of([*every_minute([instance("b1"), *rows], 30)], 30).warm_up
        for rows in ((young, old), (old, young))
    ]
    assert found[0] == found[1]
    assert found[0] is not None and found[0].candidate.excluded_minutes == 0


@pytest.mark.parametrize(("every", "share"), [(11, "100%"), (16, "75%")])
def test_frequent_restarts_are_the_reason_for_not_enough_data(every: int, share: str) -> None:
    outcome = outcome_of(list(restarting(every, 160)), 160)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "mostly_warm_up")
    sentence = not_enough_sentence(outcome, "v2", "v1", str)
    assert sentence == (
        f"Processes of v2 restart often: the warm-up of 12{SPACE}min excludes {share} of its minutes."
    )


def test_a_new_version_and_rare_restarts_have_another_reason() -> None:
    assert outcome_of(list(restarting(400, 8)), 8).reason == "warming_up"
    assert outcome_of(list(restarting(400, 15)), 15).reason == "too_short"
    assert outcome_of(list(restarting(40, 160)), 160).reason not in ("mostly_warm_up", "")


def test_the_sentence_of_a_young_version_states_the_warm_up_in_force() -> None:
    outcome = outcome_of(list(restarting(400, 8)), 8)
    assert f"their first 12{SPACE}min are excluded" in not_enough_sentence(outcome, "v2", "v1", str)


@pytest.mark.parametrize("evidence", [None, {}, {"warm_up": None}, {"warm_up": {"minutes": "5"}}])
def test_a_verdict_of_an_earlier_release_has_no_warm_up(evidence: object) -> None:
    assert read_warm_up(evidence) is None
