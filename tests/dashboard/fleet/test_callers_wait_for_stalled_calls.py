"""Wait time of callers: steady and stalled calls together, in any order and grouping of minutes;
absent is not zero."""

from __future__ import annotations

import pytest
from compilewatch.wire.sketch import Sketch
from hypothesis import given
from hypothesis import strategies as st

from dashboard.fleet.fold.call_columns import (
    COLUMNS,
    CallColumns,
    build_call_columns,
    concatenate_columns,
    parse_stored_rows,
)
from dashboard.fleet.fold.counters import CallCounts
from dashboard.fleet.metrics.aggregate import all_report_stalls, sum_calls
from dashboard.fleet.metrics.version_metrics import P99, STALLED, STALLED_TIME
from dashboard.fleet.selectors.versions.version_series import CallPoint

seconds = st.lists(st.integers(1, 640).map(lambda n: n / 64), max_size=4)
rows = st.builds(
    lambda steady, stalled: CallCounts(
        calls=len(steady) + len(stalled or ()),
        latency=Sketch.of(steady),
        stalled=Sketch.of(stalled) if stalled is not None else None,
    ),
    seconds,
    st.none() | seconds,
)


def row_of(columns: CallColumns) -> dict[str, object]:
    (values,) = columns.merged([0] * len(columns), 1).rows()
    return dict(zip(COLUMNS, values, strict=True))


@given(st.lists(rows, min_size=1, max_size=6), st.randoms(use_true_random=False), st.integers(0, 6))
def test_the_order_and_grouping_of_merging_changes_nothing(
    calls: list[CallCounts], random: object, split: int
) -> None:
    columns = row_of(build_call_columns(calls))
    shuffled = list(calls)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    stored = ("calls", "errors", "compiled")
    parts = [build_call_columns(part) for part in (shuffled[:split], shuffled[split:]) if part]
    assert row_of(concatenate_columns(*parts)) == columns
    merged = [part.merged([0] * len(part), 1) for part in parts]
    again = parse_stored_rows(
        [tuple(row[: len(COLUMNS)]) for part in merged for row in part.rows()]
    )
    assert {name: row_of(again)[name] for name in (*stored, "stalled_count", "caller_p99")} == {
        name: columns[name] for name in (*stored, "stalled_count", "caller_p99")
    }
    reporting = [one.stalled for one in calls if one.stalled is not None]
    assert columns["stalled_count"] == (sum(one.count for one in reporting) if reporting else None)
    if reporting:
        both = Sketch.of([])
        for one in calls:
            both.merge(one.latency or Sketch())
            both.merge(one.stalled or Sketch())
        p99 = both.quantile(0.99)
        # Columns add in another order than one sketch does.
        assert columns["caller_p99"] == (p99 if p99 is None else pytest.approx(p99, rel=1e-12))
    else:
        assert columns["caller_p99"] is None


def point(calls: int, steady: list[float], stalled: list[float] | None) -> CallPoint:
    latency, waited = Sketch.of(steady), Sketch.of(stalled or [])
    columns = (
        (None, None, None)
        if stalled is None
        else (len(stalled), waited.sum, waited.pack() if stalled else None)
    )
    return CallPoint(
        1,
        1,
        "",
        1000,
        calls,
        0,
        None,
        0,
        len(steady),
        len(steady),
        latency.sum,
        0,
        latency.pack() if steady else None,
        None,
        *columns,
    )


def test_quantiles_contain_stalled_calls_only_if_every_row_reports_them() -> None:
    newer = [point(30, [0.01] * 20, [0.65] * 10)]
    mixed = [*newer, point(20, [0.01] * 20, None)]
    assert (all_report_stalls(newer), all_report_stalls(mixed)) == (True, False)
    columns, steady = sum_calls(newer, "wall", True), sum_calls(mixed, "wall", False)
    assert (P99.read(columns, None) or 0) > 0.6 > 0.02 > (P99.read(steady, None) or 0)
    assert STALLED.read(columns, None) == 1 / 3
    assert STALLED.read(steady, None) == 1 / 3, "the share of calls with known stall status"
    assert (STALLED_TIME.read(columns, None) or 0) > 0.9
    assert STALLED_TIME.read(steady, None) is None


def test_there_are_quantiles_if_every_call_stalls() -> None:
    only = [point(10, [], [0.5] * 10)]
    columns = sum_calls(only, "wall", all_report_stalls(only))
    assert (STALLED.read(columns, None), STALLED_TIME.read(columns, None)) == (1.0, 1.0)
    assert (P99.read(columns, None) or 0) > 0.4
