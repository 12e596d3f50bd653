"""Two versions without a judge: what one side did not do in the window is left open, not counted as zero."""

from dashboard.fleet.figures.tally import Processes
from dashboard.ui.charts.observed import observed_rows


def test_a_version_that_started_before_the_window_has_no_compile_time_of_zero() -> None:
    before, started = (
        Processes(covered=3600.0, recompiles=0, compile_seconds=0.0, per_minute={1000: 3}),
        Processes(covered=3600.0, recompiles=0, compile_seconds=201.0, per_minute={1000: 3}),
    )
    rows = {row.key: row for row in observed_rows((None, before), (None, started), clock="wall", judged=())}
    assert rows["compile"].baseline == "–"
    assert rows["compile"].change == "–"
    assert rows["compile"].candidate == "1\u00a0min 07\u00a0s"
    neither = {row.key for row in observed_rows((None, before), (None, before), clock="wall", judged=())}
    assert "compile" not in neither
    assert "recompiles" in neither


def test_what_nobody_could_tell_is_left_out_where_it_is_so_on_both_sides() -> None:
    outside = Processes(covered=3600.0, per_minute={1000: 3})
    assert {"compile", "recompiles"}.isdisjoint(row.key for row in observed_rows((None, outside), (None, outside), clock="wall", judged=()))
