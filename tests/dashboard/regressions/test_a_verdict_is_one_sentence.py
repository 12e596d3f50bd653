"""Wording of each verdict, built from evidence."""

import pytest

from dashboard.regressions.judge import Outcome, judge
from dashboard.regressions.judge.text.verdict import verdict_sentence
from dashboard.vocabulary.numbers import format_minutes
from dashboard.vocabulary.numbers import magnitude as percent
from tests.dashboard.regressions.fleets import every_minute, instance

BASE = [instance(f"b{i}") for i in range(6)]


def judged(rows: list, minutes: int = 60) -> Outcome:
    return judge(list(every_minute(rows, minutes)), now_minute=minutes, deployed_minute=0)


def sentence_of(outcome: Outcome, cause: str | None = None) -> str:
    sentence = verdict_sentence(
        outcome,
        candidate="2026.11.3",
        baseline="2026.11.2",
        say_minute=lambda minute: f"{9 + minute // 60:02d}:{minute % 60:02d}",
        cause=cause,
    )
    return sentence.replace("\u00a0", " ")


def slow_and_eager(name: str):
    return instance(name, p50=0.0131, compiled=72, eager=28, eager_by={"limit": 28})


def test_roll_back_names_size_interval_baseline_instances_time_and_cause():
    outcome = judged([*BASE, *(slow_and_eager(f"c{i}") for i in range(6))])
    p50 = next(row for row in outcome.evidence if row.metric == "p50")
    low, high = round(p50.low * 100), round(p50.high * 100)
    expected = (
        f"Roll back 2026.11.3: p50 call time is 31% slower ({low}% to {high}%, limit 5%) than 2026.11.2, "
        "13.1 ms instead of 10 ms, on all 6 instances since the deployment; "
        "2,520 of 9,000 calls (28%) run eager: `forward` reached its recompile limit."
    )
    assert sentence_of(outcome) == expected
    assert sentence_of(outcome, cause="`score_batch` reached its recompile limit").endswith(
        "run eager: `score_batch` reached its recompile limit."
    )


def test_eager_calls_alone_name_the_instances():
    rows = [*BASE, instance("c1"), instance("c2", compiled=90, eager=10, eager_by={"limit": 10})]
    assert sentence_of(judged(rows)) == (
        "Roll back 2026.11.3: 150 of 3,000 calls (5%) run eager on 1 of 2 instances since the "
        "deployment, none of 9,000 on 2026.11.2: "
        "`forward` reached its recompile limit."
    )


def test_an_unknown_cause_is_not_guessed():
    rows = [*BASE, instance("c1"), instance("c2", compiled=90, eager=10, eager_by={"strange": 10})]
    assert sentence_of(judged(rows)).endswith("none of 9,000 on 2026.11.2.")


def test_watch_names_the_change():
    sentence = sentence_of(judged([*BASE, instance("c1", p50=0.014)], 40))
    assert sentence.startswith("p50 call time is 40% slower (")
    assert sentence.endswith("; more evidence is needed to roll back.")


def test_watch_names_the_comparable_share_of_calls():
    sentence = sentence_of(
        judged([*BASE, instance("c1"), instance("c2", stratum="L40S", calls=300)])
    )
    assert sentence.startswith(
        "Only 25% of 2026.11.3's calls can be compared with 2026.11.2: forward · L40S"
    )


def test_healthy_names_the_largest_possible_regression():
    outcome = judged([*BASE, *(instance(f"c{i}") for i in range(6))])
    assert 0.03 < outcome.bounds["p50"] < 0.05
    largest = percent(outcome.bounds["p50"])
    assert sentence_of(outcome) == (
        f"No regression above {largest} (limit 10%) in 1 h compared with 2026.11.2."
    )


WHOLE = {"calls": 1000, "p50": 0.010, "p99": 0.020, "items": 16000.0, "latency_sum": 11.0}


def twelve(**candidate: object) -> list:
    return [instance(f"b{i}", **WHOLE) for i in range(6)] + [
        instance(f"c{i}", **{**WHOLE, **candidate}) for i in range(6)
    ]


def test_healthy_names_the_largest_possible_regression_of_each_metric():
    outcome = judged(twelve())
    p50, p99 = (percent(outcome.bounds[name]) for name in ("p50", "p99"))
    throughput = percent(1 - 1 / (1 + outcome.bounds["throughput"]))
    assert len({p50, p99, throughput}) == 3
    assert outcome.bounds["p99"] == max(outcome.bounds.values())
    assert (
        sentence_of(outcome)
        == f"No regression above {p99} in 1 h compared with 2026.11.2 (95% bounds: p50 {p50}, "
        f"limit 10%; p99 {p99}, limit 20%; throughput {throughput}, limit 9.1%)."
    )


def test_a_slower_tail_and_lower_throughput_are_described_in_their_own_direction():
    outcome = judged(twelve(p99=0.030, items=12800.0))
    rows = {row.metric: row for row in outcome.evidence}
    low, high = (
        round((1 - 1 / (1 + end)) * 100)
        for end in (rows["throughput"].low, rows["throughput"].high)
    )
    assert sentence_of(outcome).startswith("Roll back 2026.11.3: p99 call time is 50% slower (")
    assert (
        f"; throughput is 20% lower ({low}% to {high}%, limit 4.8%), 1,164 items/s instead of 1,455 items/s."
        in sentence_of(outcome)
    )


def test_failing_calls_are_described_with_the_instances_and_the_baselines_share():
    rows = [*BASE, instance("c1"), instance("c2", errors=40)]
    assert (
        sentence_of(judged(rows))
        == "Roll back 2026.11.3: 600 of 3,000 calls (20%) fail on 1 of 2 instances since the "
        "deployment, none of 9,000 on 2026.11.2."
    )


def test_a_metric_that_one_version_does_not_report_is_named():
    silent = " Throughput is not evaluated: one version does not report it."
    assert (
        sentence_of(
            judged(
                [*twelve()[:6], *(instance(f"c{i}", **{**WHOLE, "items": None}) for i in range(6))]
            )
        ).count(silent)
        == 1
    )
    newly = [instance(f"b{i}", **{**WHOLE, "items": None}) for i in range(6)] + twelve()[6:]
    outcome = judged(newly)
    p50, p99 = (percent(outcome.bounds[name]) for name in ("p50", "p99"))
    assert (
        sentence_of(outcome) == f"No regression above {p99} in 1 h compared with 2026.11.2 "
        f"(95% bounds: p50 {p50}, limit 10%; p99 {p99}, limit 20%)." + silent
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [instance("c1")],
            "2026.11.2 had no traffic alongside 2026.11.3 or in the preceding 24 h. "
            "Keep a baseline instance running on H100 alongside the candidate for an hour.",
        ),
        ([instance("b1")], "2026.11.3 has not reported a call yet."),
        (
            [instance("b1"), instance("c1", p50=None)],
            "2026.11.3 and 2026.11.2 do not both report call durations.",
        ),
    ],
)
def test_not_enough_data_names_the_gap_and_the_next_step(rows: list, expected: str):
    assert sentence_of(judged(rows)) == expected


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.312, "31%"),
        (0.0011, "0.1%"),
        (-0.024, "2.4%"),
        (0.06, "6%"),
        (0.0, "0%"),
        (1.5, "150%"),
        (21.75, "22.8 times"),
    ],
)
def test_changes_have_significant_digits(ratio: float, text: str):
    assert percent(ratio).replace("\u00a0", " ") == text


def test_durations_have_readable_units():
    assert [format_minutes(minutes).replace("\u00a0", " ") for minutes in (0, 45, 60, 95)] == [
        "0 min",
        "45 min",
        "1 h",
        "1 h 35 min",
    ]


def test_the_environment_is_named_if_the_model_has_several() -> None:
    def sentence(rows: list) -> str:
        return verdict_sentence(
            judged(rows), candidate="v2", baseline="v1", say_minute=str, environment="staging"
        )

    assert sentence([*BASE, *(slow_and_eager(f"c{i}") for i in range(6))]).startswith(
        "Roll back v2 in staging: p50 call time is 31"
    )
    assert sentence([*BASE, *(instance(f"c{i}") for i in range(6))]).startswith(
        "In staging: No regression above "
    )
