"""Pending windows are merged when their memory is full: bounded, in order, and exact to the last
call."""

from __future__ import annotations

from compilewatch.export.outbox import Outbox
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import (
    MAX_FINDINGS,
    Compile,
    Device,
    Fact,
    Finding,
    Gauges,
    Region,
    Report,
)
from compilewatch.wire.sketch import Sketch

LIMIT = 60_000


def window(seq: int) -> Report:
    region = Region(
        "forward", 3, "2^4", errors=1, compiled=1, eager_by={"limit": 1}, sampled=2, items=1.5
    )
    region.latency = Sketch.of([0.001 * seq, 0.002])
    return Report(
        (seq, seq),
        (seq * 10.0, seq * 10.0 + 10.0),
        [region],
        [Compile(seq * 10.0, f"{seq}/0", "first", "ok")],
        [Finding("guard", "x", "a.py:1", 2), Finding("guard", f"only {seq}", "", 1)],
        Gauges([Device(0, seq, 1000 - seq)], host_rss=seq),
        [Fact("mark", 1.0)],
    )


def waiting(outbox: Outbox) -> list[Report]:
    return [loads(Report, entry.body) for entry in outbox._entries]


def test_a_long_outage_stays_within_memory_and_loses_no_count() -> None:
    outbox = Outbox(LIMIT)
    whole = Sketch()
    for seq in range(1, 1001):
        report = window(seq)
        assert report.regions[0].latency is not None
        whole.merge(report.regions[0].latency)
        outbox.add(report)
        assert outbox.size_bytes <= LIMIT
    reports = waiting(outbox)
    regions = [region for report in reports for region in report.regions]
    assert [
        sum(getattr(region, name) for region in regions)
        for name in ("calls", "errors", "compiled", "sampled")
    ] == [
        3000,
        1000,
        1000,
        2000,
    ]
    assert sum(region.eager_by["limit"] for region in regions) == 1000
    assert sum(region.items or 0 for region in regions) == 1500.0
    merged = Sketch()
    for region in regions:
        assert region.latency is not None
        merged.merge(region.latency)
    assert (merged.count, list(merged.items())) == (whole.count, list(whole.items()))
    assert sum(finding.count for report in reports for finding in report.findings) == 3000
    assert all(len(report.findings) <= MAX_FINDINGS for report in reports)
    assert outbox.truncated_events > 0


def test_merged_windows_cover_every_number_once_and_in_order() -> None:
    outbox = Outbox(LIMIT)
    for seq in range(1, 301):
        outbox.add(window(seq))
    reports = waiting(outbox)
    covered = [seq for report in reports for seq in range(report.seq[0], report.seq[1] + 1)]
    assert covered == list(range(1, 301))
    assert all(
        report.window == (report.seq[0] * 10.0, report.seq[1] * 10.0 + 10.0) for report in reports
    )
    assert outbox.merged_windows == 300 - len(reports)


def test_an_attempted_window_keeps_its_range_and_its_bytes() -> None:
    outbox = Outbox(LIMIT)
    outbox.add(window(1))
    outbox.add(window(2))
    first = [(entry.seq, entry.body) for entry in outbox.next_batch()]
    for seq in range(3, 400):
        outbox.add(window(seq))
    assert [(entry.seq, entry.body) for entry in outbox.next_batch()] == first
    assert [entry.seq for entry in outbox.acknowledge([(1, 2)])] == [(1, 1), (2, 2)]
    assert outbox.next_batch()[0].seq[0] == 3


def test_an_acknowledgement_removes_only_the_windows_it_covers() -> None:
    outbox = Outbox()
    for seq in (1, 2, 3):
        outbox.add(window(seq))
    outbox.next_batch(limit=2)
    assert len(outbox.acknowledge([(2, 3)])) == 1
    assert [report.seq for report in waiting(outbox)] == [(1, 1), (3, 3)]


def test_gauges_keep_the_last_value_and_the_highest_peak() -> None:
    outbox = Outbox(1)
    for seq in (1, 2, 3):
        outbox.add(window(seq))
    [report] = waiting(outbox)
    assert report.gauges.host_rss == 3
    assert (report.gauges.devices[0].allocated, report.gauges.devices[0].peak) == (3, 999)


def test_a_window_too_large_for_a_request_drops_its_largest_parts() -> None:
    outbox = Outbox(8 << 20)
    report = window(1)
    report.facts = [Fact("mark", 1.0, {f"{i}": "x" * 500 for i in range(60)}) for _ in range(60)]
    outbox.add(report)
    [kept] = waiting(outbox)
    assert (kept.regions[0].calls, len(kept.facts), len(kept.compiles), len(kept.findings)) == (
        3,
        30,
        1,
        2,
    )
    assert outbox.truncated_events == 30
