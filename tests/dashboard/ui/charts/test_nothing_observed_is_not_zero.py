"""Two versions that were not evaluated: a value that one side did not report in the window is empty
and not zero."""

import pytest

from dashboard.fleet.metrics.aggregate import CallTotals, ProcessTotals
from dashboard.ui.charts.unjudged_rows import add_stalled_calls, build_observed_rows


def test_a_version_that_started_before_the_window_has_no_compile_time_instead_of_zero() -> None:
    before, started = (
        ProcessTotals(covered=3600.0, recompiles=0, compile_seconds=0.0, per_minute={1000: 3}),
        ProcessTotals(covered=3600.0, recompiles=0, compile_seconds=201.0, per_minute={1000: 3}),
    )
    rows = {
        row.key: row
        for row in build_observed_rows((None, before), (None, started), clock="wall", judged=())
    }
    assert rows["compile"].baseline == "–"
    assert rows["compile"].change == "–"
    assert rows["compile"].candidate == "1\u00a0min 07\u00a0s"
    neither = {
        row.key
        for row in build_observed_rows((None, before), (None, before), clock="wall", judged=())
    }
    assert "compile" not in neither
    assert "recompiles" in neither


def test_a_metric_that_is_unknown_on_both_sides_is_left_out() -> None:
    outside = ProcessTotals(covered=3600.0, per_minute={1000: 3})
    assert {"compile", "recompiles"}.isdisjoint(
        row.key
        for row in build_observed_rows((None, outside), (None, outside), clock="wall", judged=())
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            CallTotals(calls=100, reporting=100),
            CallTotals(calls=100, reporting=100, stalled=12),
            "stalled calls: 0 and 12",
        ),
        (CallTotals(calls=100, reporting=100), CallTotals(calls=100, reporting=100), ""),
        (CallTotals(calls=100), CallTotals(calls=100, reporting=100, stalled=12), ""),
        (None, CallTotals(calls=100, reporting=100, stalled=12), ""),
    ],
    ids=["one stalls", "none stalls", "one does not report it", "one has no calls"],
)
def test_a_recompile_rate_of_zero_names_the_calls_that_stalled(
    before: CallTotals | None, after: CallTotals, said: str
) -> None:
    still = ProcessTotals(covered=3600.0, recompiles=0, per_minute={1000: 3})
    rows = build_observed_rows((before, still), (after, still), clock="wall", judged=())
    noted = {row.key: row.excluded for row in add_stalled_calls(rows, before, after)}
    assert noted["recompiles"] == said
    assert not any(text for key, text in noted.items() if key != "recompiles")
