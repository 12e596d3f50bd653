"""A change in words and numbers has the unit and window of its two values, for any metric."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.alerts.alert_title import build_alert_title
from dashboard.regressions.evidence_reader import read_change
from dashboard.ui.layout.change_rows import build_change_rows
from dashboard.ui.pages.compare.exports import serialize_change
from dashboard.ui.pages.fleet.cells import cold_cell, peak_cell, share_cell
from dashboard.vocabulary import numbers

S = "\u00a0"


def row(metric: str, unit: str, baseline: float, candidate: float, **more: Any) -> dict[str, Any]:
    values = {
        "baseline": baseline,
        "candidate": candidate,
        "change": None,
        "low": None,
        "high": None,
    }
    known = {
        "label": "REGRESSED",
        "judged": True,
        "hard": True,
        "drives": True,
        "matched_minutes": 180,
        "region": "f",
    }
    return {"metric": metric, "unit": unit, **values, **known, **more}


def test_errors_since_the_deployment_are_not_labelled_as_last_minutes() -> None:
    assert (
        read_change(row("errors", "share", 0.0, 0.0017, window_minutes=0)).window_said
        == f"matched 180{S}min"
    )
    assert read_change(row("errors", "share", 0.0, 0.0017)).window_said == f"matched 180{S}min"
    assert (
        read_change(row("eager", "share", 0.0, 0.28, window_minutes=15)).window_said
        == f"last 15{S}min"
    )


def test_events_of_a_start_have_no_window() -> None:
    told = serialize_change(read_change(row("cold_start", "s", 40.2, 44.1, change=0.097)))
    assert (told["window"], told["window_minutes"]) == ("start", None)


def test_memory_growth_is_a_rate_in_every_place() -> None:
    leak = row("leak", "share per hour", 0.051, 0.284, change=0.2214, low=0.11, high=0.35)
    change = read_change(leak)
    assert (change.change_said, change.range_said) == ("+23.3%/h", "11% to 35%/h")
    title = build_alert_title(model="m", version="2", sentence="", evidence={"evidence": [leak]})
    assert title == "m 2: GPU memory growth +23.3%/h"
    assert serialize_change(change)["change_ratio"] is None


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [(-0.00005, 0.0, f">{S}\u22120.01%/h"), (0.0, 0.00005, "0%/h"), (0.0, -0.0, "0%/h")],
)
def test_a_slope_near_zero_is_not_minus_zero(baseline: float, candidate: float, said: str) -> None:
    change = read_change(row("leak", "share per hour", baseline, candidate))
    assert change.baseline_said == said and "+<" not in change.change_said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0.0001, 0.0004, "+0.03"),
        (0.0012, 0.0038, "+0.26"),
        (0.01, 0.012, "+0.2"),
        (0.2, 0.35, "+15"),
    ],
)
def test_small_points_keep_the_digits_of_their_values(
    before: float, after: float, said: str
) -> None:
    assert numbers.points(after - before) == f"{said}{S}pts"


def test_minutes_keep_their_seconds_where_a_change_is_shown() -> None:
    assert (numbers.duration(601), numbers.duration(658), numbers.duration(3540)) == (
        f"10{S}min 01{S}s",
        f"10{S}min 58{S}s",
        f"59{S}min",
    )


def test_a_title_for_two_regions_names_its_own() -> None:
    fast, slow = (
        row("p50", "s", 0.01, 0.011, change=0.1, region="busy"),
        row("p50", "s", 0.01, 0.03, change=2.0, region="rare"),
    )
    title = build_alert_title(
        model="m", version="2", sentence="", evidence={"evidence": [fast, slow]}
    )
    assert title == f"m 2: p50 of rare 3{S}times as long"
    assert (
        build_alert_title(model="m", version="2", sentence="", evidence={"evidence": [slow]})
        == f"m 2: p50 3{S}times as long"
    )


def test_a_title_for_recompiles_is_short() -> None:
    storm = row(
        "recompiles",
        "per hour",
        0.0,
        12.0,
        window_minutes=15,
        excluded_baseline=3,
        excluded_candidate=21,
    )
    assert (
        build_alert_title(model="m", version="2", sentence="", evidence={"evidence": [storm]})
        == f"m 2: Recompiles +12{S}/h"
    )


def test_the_fleet_page_has_the_units_of_the_other_pages() -> None:
    rows = build_change_rows(
        {"evidence": [row("eager", "share", 0.0, 0.3, window_minutes=15)]}, "roll_back"
    )
    still = share_cell(1.0, 1.0, rows, ("eager",))
    assert (still.change, still.css) == ("no change", ""), (
        "the range did not move, although the last minutes did"
    )
    assert share_cell(0.726, 1.0, rows, ("eager",)).css
    gib = 1 << 30
    assert peak_cell(int(31.2 * gib), int(30.5 * gib), []).change == "+2.3%"
    cold = cold_cell(41.5, 40.2, None)
    assert cold is not None and (cold.change, cold.detail) == ("+3.2%", f"from 40.2{S}s")
