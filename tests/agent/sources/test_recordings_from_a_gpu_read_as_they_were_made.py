"""The recordings of an H200 match their README: pages and replays are tested with these
recordings."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Report, Request

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


def requests_of(name: str) -> list[Request]:
    with gzip.open(RECORDINGS / f"h200-serve-{name}.jsonl.gz") as lines:
        return [loads(Request, line) for line in lines]


def reports_of(name: str) -> list[Report]:
    return [report for request in requests_of(name) for report in request.reports]


@pytest.mark.parametrize("name", ["v1-a", "v1-b", "v2-a", "v2-b"])
def test_each_is_one_instance_without_a_gap(name: str) -> None:
    requests, reports = requests_of(name), reports_of(name)
    assert {
        (request.instance.id, request.instance.version, request.instance.gpu)
        for request in requests
    } == {(requests[0].instance.id, name[1], "NVIDIA H200")}
    assert [report.seq for report in reports] == [
        (number, number) for number in range(1, len(reports) + 1)
    ]
    assert any(region.gpu is not None for report in reports for region in report.regions)
    assert any(device.allocated for report in reports for device in report.gauges.devices)
    assert all(
        "triton" in compile.seconds
        for report in reports
        for compile in report.compiles
        if compile.cache.get("fx") == "miss"
    )


def test_only_the_version_that_forgot_to_pad_runs_eager() -> None:
    for name, eager_expected in {"v1-a": False, "v2-a": True}.items():
        counts: Counter[str] = Counter()
        latched = 0
        for report in reports_of(name):
            latched += sum(fact.kind == "latched_eager" for fact in report.facts)
            for region in report.regions:
                counts.update(region.eager_by)
        assert (counts["limit"] > 1000, latched) == (eager_expected, int(eager_expected))
