"""All bins of a version together equal the same rows in a single bin, so that the table of versions
matches the charts."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from compilewatch.wire.sketch import Sketch
from hypothesis import given
from hypothesis import strategies as st

from dashboard.fleet.metrics.aggregate import (
    CallTotals,
    bin_calls,
    bin_processes,
    sum_call_bins,
    sum_process_bins,
)
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.versions.version_series import CallPoint, ProcessPoint

WINDOW = TimeBins(1000, 1060, 10)
WHOLE = TimeBins(1000, 1060, 60)
versions, minutes = st.integers(1, 3), st.integers(1000, 1059)
packed = st.none() | st.lists(st.integers(0, 640).map(lambda n: n / 64), max_size=5).map(
    lambda values: Sketch.of(values).pack()
)
# Halves add up exactly in every order.
halves = st.integers(0, 1000).map(lambda n: n / 2)
counts = st.integers(0, 1000)
known = st.none() | counts

calls = st.builds(
    CallPoint,
    versions, st.just(1), st.just(""), minutes, counts, known, st.none() | halves, counts, counts, counts, halves, counts, packed, packed,
    known, st.none() | halves, packed, packed,
)  # fmt: skip
processes = st.builds(
    ProcessPoint,
    versions,
    minutes,
    counts,
    halves,
    known,
    st.none() | halves,
    halves,
    halves,
    known,
    known,
)


def stall_counts(calls: CallTotals) -> tuple[object, ...]:
    return calls.stalled, calls.stalled_seconds, calls.reporting, calls.warmup


def counted(calls: CallTotals) -> tuple[object, ...]:
    return (
        calls.calls,
        calls.errors,
        calls.told,
        calls.eager,
        calls.known,
        calls.items,
        calls.latency_count,
        calls.latency_sum,
        stall_counts(calls),
    )


@given(st.lists(calls, max_size=30))
def test_bins_of_calls_add_up(rows: list[CallPoint]) -> None:
    totals = sum_call_bins(bin_calls(rows, WINDOW, "wall"))
    expected = {version: bins[0] for version, bins in bin_calls(rows, WHOLE, "wall").items()}
    assert {version: counted(total) for version, total in totals.items()} == {
        id: counted(total) for id, total in expected.items()
    }
    for q in (0.5, 0.99):
        for version, total in totals.items():
            mine, other = total.sketch.quantile(q), expected[version].sketch.quantile(q)
            assert (
                mine == other
                if mine is None or other is None
                else mine == pytest.approx(other, rel=1e-14)
            )


@given(st.lists(processes, max_size=30))
def test_bins_of_processes_add_up(rows: list[ProcessPoint]) -> None:
    totals = sum_process_bins(bin_processes(rows, WINDOW))
    expected = {version: bins[0] for version, bins in bin_processes(rows, WHOLE).items()}
    assert {version: asdict(total) for version, total in totals.items()} == {
        id: asdict(total) for id, total in expected.items()
    }
