"""Start of a change in sentences: its interval, its only minute, the deployment, or the first
compared minute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.regressions.judge import Outcome, judge
from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.text.onset import describe_start, started_together
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.dashboard.regressions.fleets import every_minute, instance

BASE = [instance(f"b{i}") for i in range(6)]
NEW = [f"c{i}" for i in range(6)]


def judged(at: int, minutes: int = 120, deployed: int = 0, **changes: Any) -> Outcome:
    """A candidate that equals its baseline until a minute, and then changes."""
    before = every_minute([*BASE, *map(instance, NEW)], at)
    after = every_minute([*BASE, *(instance(name, **changes) for name in NEW)], minutes - at, at)
    return judge([*before, *after], now_minute=minutes, deployed_minute=deployed)


def driving(outcome: Outcome) -> Evidence:
    (row,) = [row for row in outcome.evidence if row.drives]
    return row


def sentence_of(outcome: Outcome) -> str:
    return verdict_sentence(
        outcome, candidate="v2", baseline="v1", say_minute=lambda minute: f"minute {minute}"
    ).replace("\u00a0", " ")


def test_a_level_has_the_minutes_between_which_it_rose() -> None:
    outcome = judged(60, p50=0.013)
    row = driving(outcome)
    assert row.onset and row.onset[0] <= 60 <= row.onset[1] and row.onset[1] - row.onset[0] < 3
    assert row.since == 60 and not row.from_start
    assert sentence_of(outcome).endswith(
        f"on all 6 instances, starting between minute {row.onset[0]} and minute {row.onset[1]}."
    )


def test_a_count_has_the_minutes_between_which_it_rose() -> None:
    outcome = judged(70, errors=40)
    row = driving(outcome)
    assert row.metric == "errors" and row.onset and row.onset[0] <= 70 <= row.onset[1]
    assert (
        f"on all 6 instances, starting between minute {row.onset[0]} and minute {row.onset[1]}, "
        "none of 9,000 on v1"
    ) in sentence_of(outcome)


def test_a_change_of_the_first_compared_minute_is_since_the_deployment() -> None:
    outcome = judged(0, p50=0.013)
    row = driving(outcome)
    assert (row.onset, row.from_start) == (None, True)
    assert sentence_of(outcome).endswith("on all 6 instances since the deployment.")


def test_a_first_comparison_long_after_the_deployment_is_stated() -> None:
    outcome = judged(0, deployed=-300, p50=0.013)
    assert f"since minute {driving(outcome).since} or earlier." in sentence_of(outcome)


def test_counts_that_began_with_the_level_do_not_repeat_its_start() -> None:
    changes = {"p50": 0.013, "compiled": 60, "eager": 40, "eager_by": {"limit": 40}}
    sentence = sentence_of(judged(60, **changes))
    assert sentence.count("starting between") == 1
    assert "; 3,600 of 9,000 calls (40%) run eager: " in sentence


def test_a_metric_that_drives_nothing_has_no_onset() -> None:
    outcome = judged(60, p50=0.013)
    assert all(row.onset is None for row in outcome.evidence if not row.drives)


def test_one_minute_is_stated_without_an_interval() -> None:
    row = driving(judged(60, p50=0.013))
    assert describe_start(replace(row, onset=(60, 60)), 0, str) == " since 60"
    assert describe_start(replace(row, onset=None), 0, str) == " since 60"
    assert describe_start(replace(row, onset=None, since=None), 0, str) == ""


def test_changes_with_a_common_minute_began_together() -> None:
    row = driving(judged(60, p50=0.013))
    one = replace(row, onset=(50, 60), since=55)
    assert started_together(one, replace(row, onset=(60, 62), since=61))
    assert not started_together(one, replace(row, onset=(61, 62), since=61))
    assert not started_together(one, replace(row, onset=None, since=61))
