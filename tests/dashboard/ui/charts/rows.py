"""Rows as the selectors return them: steady values by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilewatch.wire.sketch import Sketch

from dashboard.fleet.selectors.versions.version_series import CallPoint, ProcessPoint

A, B = 1, 2


def calls(
    minute: int, values: Sequence[float] = (0.01,) * 50, *, version: int = A, **changed: Any
) -> CallPoint:
    """One minute of calls with these latencies in seconds."""
    sketch = Sketch.of(values)
    facts: dict[str, Any] = {
        "version_id": version,
        "stratum_id": 7,
        "bucket": "2^8",
        "minute": minute,
        "calls": len(values),
        "errors": 0,
        "items": None,
        "eager": 0,
        "known": len(values),
        "latency_count": len(values),
        "latency_sum": sketch.sum,
        "gpu_count": 0,
        "latency": sketch.pack(),
        "gpu": None,
    }
    return CallPoint(**(facts | changed))


def process(minute: int, *, version: int = A, **changed: Any) -> ProcessPoint:
    """One minute of two processes."""
    facts: dict[str, Any] = {
        "version_id": version,
        "minute": minute,
        "instances": 2,
        "covered": 120.0,
        "recompiles": 0,
        "compile_seconds": 0.0,
        "hit_seconds": 0.0,
        "miss_seconds": 0.0,
        "gpu_peak": None,
        "host_rss": None,
    }
    return ProcessPoint(**(facts | changed))
