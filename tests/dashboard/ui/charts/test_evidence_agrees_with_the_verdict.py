"""Rows of evidence in words and in the interval plot: worse is to the right, only metrics that
drive a rollback are red, missing keys are omitted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dashboard.ui.charts.evidence_table import build_evidence_rows

P50: dict[str, Any] = {
    "metric": "gpu_p50",
    "region": "forward",
    "unit": "s",
    "label": "REGRESSED",
    "judged": True,
    "hard": True,
    "drives": True,
    "since": 29_000_000,
    "baseline": 0.014,
    "candidate": 0.0184,
    "change": 0.31,
    "low": 0.24,
    "high": 0.38,
    "smallest_effect": 0.05,
    "worse": 1,
    "matched_minutes": 130,
    "strata": [{"stratum": "H200"}, {"stratum": "H100"}],
    "strata_agreeing": 2,
    "candidate_instances": 6,
    "affected_instances": 6,
}
EAGER: dict[str, Any] = {
    "metric": "eager",
    "region": "forward",
    "unit": "share",
    "label": "REGRESSED",
    "judged": True,
    "hard": True,
    "drives": True,
    "baseline": 0.0,
    "candidate": 0.288,
    "change": None,
    "smallest_effect": 0.02,
    "candidate_instances": 6,
    "affected_instances": 6,
}


def rows(*evidence: dict[str, Any], verdict: str = "roll_back") -> Any:
    return build_evidence_rows({"evidence": list(evidence)}, verdict=verdict)


def test_a_latency_is_shown_in_words_and_on_the_log_scale() -> None:
    (row,) = rows(P50)
    assert (row.title, row.detail, row.baseline, row.candidate) == (
        "p50",
        "GPU time",
        "14\u00a0ms",
        "18.4\u00a0ms",
    )
    assert (row.change, row.spread, row.agreeing, row.matched, row.trend) == (
        "+31%",
        "24% to 38%",
        "2 of 2",
        "130",
        "p50",
    )
    assert row.red and row.interval is not None and row.interval.tone == "rollback"
    assert (
        row.interval.centre == pytest.approx(math.log(1.31))
        and row.interval.low < row.interval.centre < row.interval.high
    )


def test_a_count_is_shown_in_points_and_instances_without_an_interval() -> None:
    (row,) = rows(EAGER)
    assert (row.change, row.spread, row.interval, row.note) == (
        "+28.8\u00a0pts",
        "6 of 6\u00a0instances",
        None,
        "0% to 28.8%",
    )


def test_a_rate_is_shown_in_points_and_as_a_ratio_and_is_not_plotted() -> None:
    rate = {
        "metric": "errors",
        "baseline": 0.001,
        "candidate": 0.012,
        "change": 11.0,
        "low": 4.0,
        "high": 30.0,
    }
    (row,) = rows(EAGER | rate | {"smallest_effect": 1.0, "times": 2.0, "points": 0.002})
    assert (row.title, row.change, row.spread, row.interval) == (
        "Errors",
        "+1.1\u00a0pts",
        "5 to 31\u00a0times",
        None,
    )
    assert row.effect == "threshold 2 times and +0.2\u00a0pts"


def test_a_change_explained_by_another_metric_names_that_metric_and_is_not_red() -> None:
    tail = P50 | {"metric": "gpu_p99", "drives": False, "explained_by": "gpu_p50"}
    first, second = rows(P50, tail)
    assert (first.follows, first.red) == ("", True)
    assert (second.title, second.follows, second.red, second.caution) == ("p99", "p50", False, True)


def test_a_metric_that_one_version_does_not_report_is_marked() -> None:
    silent = {
        "baseline": 1400.0,
        "candidate": None,
        "change": None,
        "label": "NOT ENOUGH DATA",
        "reason": "one_sided",
        "drives": False,
    }
    (row,) = rows(P50 | {"metric": "throughput", "unit": "items/s"} | silent)
    assert (row.baseline, row.candidate, row.note) == (
        "1,400\u00a0items/s",
        "–",
        "one version does not report it",
    )


def test_lower_throughput_points_to_the_right_and_reads_as_lower() -> None:
    (row,) = rows(
        P50
        | {
            "metric": "throughput",
            "unit": "items/s",
            "worse": -1,
            "baseline": 1400.0,
            "candidate": 1064.0,
        }
        | {"change": 1 / 0.76 - 1, "low": 1 / 0.82 - 1, "high": 1 / 0.71 - 1}
    )
    assert row.interval.centre > 0
    assert (row.change, row.spread) == ("\u221224%", "\u221229% to \u221218%")


@pytest.mark.parametrize(
    ("changed", "verdict", "tone"),
    [
        ({}, "roll_back", "rollback"),
        ({"hard": False}, "roll_back", "watch"),
        ({}, "watch", "watch"),
        ({"drives": False}, "roll_back", "watch"),
        ({"label": "NO CHANGE", "drives": False}, "roll_back", "quiet"),
        ({"label": "NOT ENOUGH DATA", "drives": False}, "watch", "open"),
        ({"judged": False}, "roll_back", "open"),
    ],
)
def test_only_metrics_that_drive_a_rollback_are_red(
    changed: dict[str, Any], verdict: str, tone: str
) -> None:
    (row,) = rows(P50 | changed, verdict=verdict)
    assert row.interval.tone == tone and row.red == (tone == "rollback")


def test_a_metric_that_is_not_evaluated_is_labelled_as_such() -> None:
    (row,) = rows(P50 | {"judged": False, "drives": False})
    assert (row.label, row.judged) == ("NOT JUDGED", False)


def test_a_muted_metric_is_labelled_as_muted() -> None:
    (row,) = rows(P50 | {"judged": False, "drives": False, "muted": True})
    assert (row.label, row.judged, row.red) == ("MUTED", False, False)


@pytest.mark.parametrize("missing", sorted(set(P50) - {"metric"}))
def test_a_missing_key_is_not_an_error(missing: str) -> None:
    (row,) = rows({key: value for key, value in P50.items() if key != missing})
    assert row.title == "p50"


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"evidence": None},
        {"evidence": [None, 3, {}]},
        {"evidence": [{"metric": "new_one", "change": "much"}]},
    ],
)
def test_malformed_evidence_makes_no_claim(odd: dict[str, Any]) -> None:
    assert all(row.interval is None and row.change == "–" for row in build_evidence_rows(odd))


def test_missing_numbers_are_dashes_and_not_zeros() -> None:
    (row,) = rows(
        P50
        | {
            "baseline": None,
            "candidate": None,
            "change": None,
            "low": None,
            "high": None,
            "label": "NOT ENOUGH DATA",
            "drives": False,
        }
    )
    assert (row.baseline, row.candidate, row.change, row.interval) == ("–", "–", "–", None)


def test_regions_are_named_if_there_are_several() -> None:
    assert [row.detail for row in rows(P50, P50 | {"region": "encode"})] == [
        "GPU time, forward",
        "GPU time, encode",
    ]
