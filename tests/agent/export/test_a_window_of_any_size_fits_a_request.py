"""A window with any amount of events, and a window that a long outage merged, fits a request with
exact counts."""

from __future__ import annotations

import random
from collections import Counter

from compilewatch.export.fit_to_limit import fit_report
from compilewatch.export.outbox import MAX_BATCH_BYTES, MAX_BYTES, Outbox
from compilewatch.export.sender import request_body
from compilewatch.recording.aggregate import OVERFLOW_TEXT
from compilewatch.recording.call_recorder import MAX_BUFFERS
from compilewatch.recording.region_spec import OTHER
from compilewatch.wire.codec import dumps, loads
from compilewatch.wire.messages import (
    MAX_REASON,
    MAX_REPORTS,
    MAX_TEXT,
    Compile,
    Fact,
    Finding,
    Identity,
    Region,
    Report,
    Request,
)
from compilewatch.wire.sketch import MAX_BINS, MIN_INDEX, Sketch
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.ingest.validation import report_check

HUGE = 1 << 30
COUNTS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")


def full_sketch(number: int) -> Sketch:
    """A sketch with every bin filled."""
    bins = [10_000 + number] * MAX_BINS
    return Sketch(
        count=sum(bins), sum=1.0, min=2.0**-31.99, max=2.0**32, offset=MIN_INDEX, bins=bins
    )


def totals(reports: list[Report]) -> Counter[object]:
    """Every count that must be kept, without the names that may be dropped."""
    found: Counter[object] = Counter()
    for report in reports:
        for finding in report.findings:
            found["finding", finding.kind] += finding.count
        for region in report.regions:
            for name in COUNTS:
                found[name, region.outermost] += getattr(region, name)
            for cause, count in region.eager_by.items():
                found[cause] += count
            for name in ("latency", "gpu", "warmup"):
                for index, count in (getattr(region, name) or Sketch()).items():
                    found[name, index] += count
    return +found


def worst(seq: int, lines: int = MAX_BUFFERS) -> Report:
    """The maximum number of regions of a process, each with full histograms, and text samples that
    JSON makes six times longer."""
    wide = "\u4e00"
    regions = [
        Region(
            f"{number % 20}{wide * (MAX_TEXT - 3)}",
            number + seq,
            f"2^{number}",
            mode=str(number % 3),
            outermost=number % 2 == 0,
            eager_by={"limit": number},
            latency=full_sketch(number),
        )
        for number in range(lines)
    ]
    compiles = [
        Compile(1.0, f"0/{number}", "recompile", "ok", reason=wide * MAX_REASON)
        for number in range(200)
    ]
    findings = [
        Finding("guard", f"{number} {wide * 400}", wide * MAX_TEXT, 3) for number in range(200)
    ]
    facts = [Fact("mark", 1.0, {"name": wide * MAX_TEXT}) for _ in range(200)]
    return Report(
        (seq, seq), (seq * 10.0, seq * 10.0 + 10.0), regions, compiles, findings, facts=facts
    )


def test_the_largest_window_fits_a_request_and_the_dashboard_takes_it() -> None:
    before = totals([worst(1)])
    outbox = Outbox()
    outbox.add(worst(1))
    [entry] = outbox.next_batch()
    assert len(entry.body) <= MAX_BATCH_BYTES
    [kept] = loads(Request, request_body(Identity("i", 0.0, "m", "v"), [entry], 1.0)).reports
    report_check(kept)
    assert totals([kept]) == before
    assert outbox.truncated_events > 0


def test_a_long_outage_of_the_largest_windows_is_bounded_and_exact() -> None:
    outbox, before = Outbox(), Counter[object]()
    for seq in range(1, 5):
        before += totals([worst(seq, 80)])
        outbox.add(worst(seq, 80))
        assert outbox.size_bytes <= MAX_BYTES
    entries = outbox.pending()
    assert all(len(entry.body) <= MAX_BATCH_BYTES for entry in entries)
    assert totals([loads(Report, entry.body) for entry in entries]) == before
    assert 1 <= len(outbox.next_batch(MAX_REPORTS)) <= len(entries)


def test_the_most_called_region_keeps_its_name() -> None:
    regions = [
        Region(f"rare {number}", 1, "2^4", latency=full_sketch(number)) for number in range(40)
    ]
    busiest = Region("busy", 1_000_000, "2^9", latency=full_sketch(7))
    report = Report((1, 1), (0.0, 10.0), [*regions, busiest])
    body, lost = fit_report(report, 200_000)
    kept = {(region.name, region.bucket): region.calls for region in loads(Report, body).regions}
    assert kept["busy", "2^9"] == 1_000_000
    assert sum(kept.values()) == 1_000_040
    assert any(OTHER in key for key in kept) and lost >= 40 - len(kept)


def test_a_window_that_fits_is_not_changed() -> None:
    report = Report(
        (1, 1),
        (0.0, 10.0),
        [Region("a", 1, "2^3", latency=Sketch.of([0.1]))],
        [Compile(1.0, "0/0", "first", "ok")],
    )
    assert fit_report(report, MAX_BATCH_BYTES) == (dumps(report), 0)
    assert [region.bucket for region in report.regions] == ["2^3"]


def grown(seed: int) -> Report:
    """Any mixture of regions and findings from a seed: thousands of bins are too many to draw as
    lists."""
    chance = random.Random(seed)
    regions = {
        (name, bucket, mode, outermost): Region(
            name,
            chance.randrange(HUGE),
            bucket,
            mode=mode,
            outermost=outermost,
            errors=chance.randrange(9),
            compiled=chance.randrange(9),
            eager_by={"limit": chance.randrange(9)},
            latency=Sketch.of([chance.lognormvariate(-5, 4) for _ in range(chance.randrange(300))]),
            warmup=chance.choice([None, full_sketch(chance.randrange(9))]),
        )
        for name, bucket, mode, outermost in (
            (
                f"r{chance.randrange(40)}",
                chance.choice(["", "2^3", OTHER]),
                chance.choice(["default", "x"]),
                chance.random() < 0.5,
            )
            for _ in range(chance.randrange(30))
        )
    }
    findings = [
        Finding(
            chance.choice(["guard", "graph_break"]),
            chance.choice(["x", OVERFLOW_TEXT]) + str(n),
            "w" * 500,
            n + 1,
        )
        for n in range(chance.randrange(200))
    ]
    return Report((1, 1), (0.0, 1.0), list(regions.values()), findings=findings)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, HUGE), st.integers(20_000, 300_000))
def test_totals_are_exact_at_any_limit(seed: int, limit: int) -> None:
    report = grown(seed)
    before = totals([report])
    body, lost = fit_report(report, limit)
    after = loads(Report, body)
    assert totals([after]) == before
    assert (lost == 0) == (len(dumps(grown(seed))) <= limit)
    assert (
        len(body) <= limit or len(after.regions) <= 4
    )  # with a bucket or without, outermost or nested
