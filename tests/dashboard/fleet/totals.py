"""Sums over the sent and the stored values, in one shape for comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from compilewatch.wire.messages import Report, Request
from compilewatch.wire.sketch import Sketch
from django.db.models import Model

from dashboard.fleet.models import RegionMinute, VersionHour, VersionMinute

COUNTS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")


def bins(sketches: Iterable[Sketch | bytes | memoryview | None]) -> Counter[int]:
    """All bins of all sketches added up."""
    total: Counter[int] = Counter()
    for sketch in sketches:
        if sketch is not None:
            total.update(
                dict(
                    (sketch if isinstance(sketch, Sketch) else Sketch.unpack(bytes(sketch))).items()
                )
            )
    return total


def sent(requests: Iterable[Request]) -> dict[str, Any]:
    """The sums over the regions of the requests."""
    regions = [
        region for request in requests for report in request.reports for region in report.regions
    ]
    counts = {name: sum(getattr(region, name) for region in regions) for name in COUNTS}
    return {
        **counts,
        "eager_limit": sum(region.eager_by.get("limit", 0) for region in regions),
        "latency": bins(region.latency for region in regions),
    }


def stored(model: type[Model] = RegionMinute) -> dict[str, Any]:
    """The sums over the stored rows of a table of calls."""
    rows = list(model._default_manager.values(*COUNTS, "eager_limit", "latency"))
    counts = {name: sum(row[name] for row in rows) for name in (*COUNTS, "eager_limit")}
    return {**counts, "latency": bins(row["latency"] for row in rows)}


def assert_all_counted(requests: Iterable[Request]) -> None:
    """Asserts that every table of calls has exactly the sent sums."""
    expected = sent(list(requests))
    assert stored(RegionMinute) == expected
    assert stored(VersionMinute) == expected
    assert stored(VersionHour) == expected


def reports_of(requests: Iterable[Request]) -> list[Report]:
    """All reports of the requests."""
    return [report for request in requests for report in request.reports]
