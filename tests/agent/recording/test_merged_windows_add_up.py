"""For every way in which unacknowledged windows merge, each number is covered once, totals are
exact, and attempted windows are frozen."""

from __future__ import annotations

from collections import Counter

from compilewatch.export.outbox import Outbox
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import EAGER_CAUSES, Finding, Region, Report
from compilewatch.wire.sketch import Sketch
from hypothesis import given, settings
from hypothesis import strategies as st

LIMIT = 4_000
counts = st.integers(0, 50)
durations = st.lists(st.floats(1e-9, 1e6), max_size=4)
regions = st.builds(
    lambda name, bucket, calls, errors, eager, steady, warm: Region(
        name,
        calls,
        bucket,
        errors=errors,
        eager_by=eager,
        latency=Sketch.of(steady) if steady else None,
        warmup=Sketch.of(warm) or None,
    ),
    st.sampled_from("ab"),
    st.sampled_from(["", "2^3", "other"]),
    counts,
    counts,
    st.dictionaries(st.sampled_from(EAGER_CAUSES), counts, max_size=2),
    durations,
    durations,
)
findings = st.builds(
    Finding, st.just("guard"), st.sampled_from(["x", "y", "z"]), st.just(""), st.integers(1, 9)
)
windows = st.tuples(
    st.lists(regions, max_size=4, unique_by=lambda one: (one.name, one.bucket)),
    st.lists(findings, max_size=4),
)


def totals(reports: list[Report]) -> Counter[object]:
    found: Counter[object] = Counter()
    for report in reports:
        for finding in report.findings:
            found[finding.text] += finding.count
        for region in report.regions:
            key = (region.name, region.bucket)
            found[key, "calls"] += region.calls
            found[key, "errors"] += region.errors
            for cause, count in region.eager_by.items():
                found[key, cause] += count
            for name in ("latency", "warmup"):
                for index, count in (getattr(region, name) or Sketch()).items():
                    found[key, name, index] += count
    return +found


@settings(max_examples=60, deadline=None)
@given(st.lists(windows, min_size=1, max_size=60), st.sets(st.integers(0, 59), max_size=4))
def test_totals_ranges_and_frozen_bytes(
    given_windows: list[tuple[list[Region], list[Finding]]], attempts: set[int]
) -> None:
    outbox, frozen, whole = Outbox(LIMIT), {}, Counter[object]()
    for number, (some_regions, some_findings) in enumerate(given_windows):
        report = Report(
            (number + 1, number + 1),
            (number * 10.0, number * 10.0 + 10.0),
            some_regions,
            findings=some_findings,
        )
        whole += totals([report])
        outbox.add(report)
        if number in attempts:
            frozen.update({entry.seq: entry.body for entry in outbox.next_batch(limit=2)})
    entries = outbox.pending()
    reports = [loads(Report, entry.body) for entry in entries]
    assert [seq for report in reports for seq in range(report.seq[0], report.seq[1] + 1)] == list(
        range(1, len(given_windows) + 1)
    )
    assert totals(reports) == whole
    assert {entry.seq: entry.body for entry in entries if entry.attempted} == frozen
