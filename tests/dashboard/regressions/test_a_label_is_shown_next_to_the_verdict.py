"""Calibration: records when a fault was labelled REGRESSED, before hold times, and whether the
share of labelled faults meets the goal."""

from __future__ import annotations

from dataclasses import replace

from scipy.stats import fisher_exact

from dashboard.regressions.judge import PRODUCTION
from tests.bench.calibrate_table import GOALS, REFERENCE_TRIALS, UNLIKELY, reaches, table
from tests.bench.fleet_sim import Fleet
from tests.bench.judge_trials import watch

ROW = ("fault", "p50 +20%, 1 v 3+3")
LINE = {
    "judge": "j",
    "prior": "learned",
    "minutes": 60,
    "group": ROW[0],
    "name": ROW[1],
    "roll_back": None,
    "watch": None,
    "healthy": [],
    "peers": {"pooled": None, "kayenta": None, "threshold": None},
    "took": 1.0,
}


def rows(labels: list[dict[str, int]]) -> list[str]:
    return list(
        table([{**LINE, "seed": seed, "labelled": of} for seed, of in enumerate(labels)], [ROW])
    )


def test_a_fault_is_labelled_before_its_hold_time_ends() -> None:
    slow = Fleet(
        seed=710_000, gpus=("H100",), candidates=3, stagger=0, minutes=40, fault="slow", size=0.6
    )
    found = watch((slow, PRODUCTION))
    assert found.roll_back is not None
    assert found.labelled["p50"] < found.roll_back
    assert watch((replace(slow, fault="none"), PRODUCTION)).labelled == {}


def test_a_lone_instance_is_labelled_while_the_verdict_waits() -> None:
    found = watch(
        (
            Fleet(seed=710_001, gpus=("H100",), candidates=1, minutes=35, fault="slow", size=0.8),
            PRODUCTION,
        )
    )
    assert "p50" in found.labelled
    assert found.roll_back is None


def test_a_row_reports_whether_its_goal_lies_within_the_sampling_errors() -> None:
    near = rows([{"p50": 30}] * 28 + [{}] * 32)
    assert any("| 28 of 60, 30 min | 53%: reached |" in line for line in near)
    assert "1 of 1 rows with a goal reach the goal within the sampling errors of both." in near
    far = rows([{"p50": 30}] * 15 + [{"errors": 30}] * 45)
    assert any("| 15 of 60, 30 min | 53%: missed |" in line for line in far)
    assert "- p50 +20%, 1 v 3+3: labelled in 15 of 60; 53% required" in far


def test_a_row_that_meets_its_goal_only_within_the_error_of_the_reference_is_listed() -> None:
    found = rows([{"p50": 30}] * 22 + [{}] * 38)
    assert any("| 22 of 60, 30 min | 53%: within both errors |" in line for line in found)
    assert found[-4:-1] == [
        "1 of 1 rows with a goal reach the goal within the sampling errors of both.",
        "1 of these would miss the goal if the required percentage were exact:",
        "- p50 +20%, 1 v 3+3: labelled in 22 of 60; 53% required",
    ]


def test_both_sampling_errors_are_those_of_fishers_exact_test() -> None:
    for share, found, count in (
        (100, 28, 30),
        (100, 24, 30),
        (53, 20, 60),
        (53, 15, 60),
        (0, 0, 60),
        (7, 0, 60),
        (33, 4, 60),
    ):
        asked = round(share * REFERENCE_TRIALS / 100)
        chance = fisher_exact(
            [[found, count - found], [asked, REFERENCE_TRIALS - asked]], alternative="less"
        ).pvalue
        assert reaches(share, found, count) == (chance >= UNLIKELY)


def test_every_goal_is_a_share_of_thirty_deployments_rounded_to_a_percent() -> None:
    shares = {share for goal in GOALS.values() for share in goal.asked}
    fits = {
        trials
        for trials in range(1, 61)
        if all(round(100 * round(share * trials / 100) / trials) == share for share in shares)
    }
    assert fits == {REFERENCE_TRIALS, 2 * REFERENCE_TRIALS}


def test_stored_results_without_labels_can_be_read() -> None:
    found = list(table([{**LINE, "seed": 1}], [ROW]))
    assert any("| 1 | – | 53% |" in line for line in found)
