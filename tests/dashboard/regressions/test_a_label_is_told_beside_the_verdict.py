"""A calibration tells when a fault was labelled REGRESSED, before hold times, and whether that is as often as is asked."""

from __future__ import annotations

from dataclasses import replace

from dashboard.regressions.judge import PRODUCTION
from tests.bench.calibrate_table import table
from tests.bench.fleet_sim import Fleet
from tests.bench.judge_trials import watch

ROW = ("fault", "p50 +20 %, 1 v 3+3")
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
    return list(table([{**LINE, "seed": seed, "labelled": of} for seed, of in enumerate(labels)], [ROW]))


def test_a_fault_is_labelled_before_it_has_held_long_enough_to_be_rolled_back() -> None:
    slow = Fleet(seed=710_000, gpus=("H100",), candidates=3, stagger=0, minutes=40, fault="slow", size=0.6)
    found = watch((slow, PRODUCTION))
    assert found.roll_back is not None
    assert found.labelled["p50"] < found.roll_back
    assert watch((replace(slow, fault="none"), PRODUCTION)).labelled == {}


def test_a_lone_instance_is_labelled_where_the_verdict_waits() -> None:
    found = watch((Fleet(seed=710_001, gpus=("H100",), candidates=1, minutes=35, fault="slow", size=0.8), PRODUCTION))
    assert "p50" in found.labelled
    assert found.roll_back is None


def test_a_row_says_whether_its_goal_lies_within_the_sampling_error() -> None:
    near = rows([{"p50": 30}] * 28 + [{}] * 32)
    assert any("| 28 of 60, 30 min | 53 %: reached |" in line for line in near)
    assert "1 of 1 rows with a goal reach it within their sampling error." in near
    far = rows([{"p50": 30}] * 20 + [{"errors": 30}] * 40)
    assert any("| 20 of 60, 30 min | 53 %: missed |" in line for line in far)
    assert "- p50 +20 %, 1 v 3+3: labelled in 20 of 60; 53 % is asked" in far


def test_what_was_kept_without_labels_is_read_too() -> None:
    found = list(table([{**LINE, "seed": 1}], [ROW]))
    assert any("| 1 | – | 53 % |" in line for line in found)
