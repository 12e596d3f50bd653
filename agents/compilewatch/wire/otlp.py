"""OTLP mapping: a request as OpenTelemetry metrics in OTLP's JSON form; the names for both sides,
and the agent's encoder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from compilewatch.wire.messages import Identity, Region, Report, Request
from compilewatch.wire.sketch import Sketch

SCOPE = "compilewatch"
DELTA = 1
"""Delta temporality: the change since the previous point."""
NANOSECONDS = 1_000_000_000

REGION, BUCKET, MODE, RUNTIME, OUTERMOST = (
    f"compilewatch.{name}" for name in ("region", "bucket", "mode", "runtime", "outermost")
)
"""Attributes of a point.

A histogram with a name in `SKETCHES` and the first attribute counts as a region, regardless of its
sender.
"""
SKETCHES = {
    "compilewatch.duration": "latency",
    "compilewatch.gpu.duration": "gpu",
    "compilewatch.warmup.duration": "warmup",
    "compilewatch.stalled.duration": "stalled",
}
COUNTS = {
    "compilewatch.calls": "calls",
    "compilewatch.errors": "errors",
    "compilewatch.items": "items",
    "compilewatch.calls.compiled": "compiled",
    "compilewatch.calls.partial": "partial",
    "compilewatch.calls.unknown": "unknown",
    "compilewatch.calls.sampled": "sampled",
}
EAGER, CAUSE = "compilewatch.calls.eager", "compilewatch.cause"
FIRST, LAST = "compilewatch.window.first", "compilewatch.window.last"
"""Gauges with the sequence numbers of a window, so that the dashboard counts no window twice."""
STANDARD = {
    "id": "service.instance.id",
    "model": "service.name",
    "version": "service.version",
    "environment": "deployment.environment.name",
    "host": "host.name",
    "node": "k8s.node.name",
    "pid": "process.pid",
}
OWN = "compilewatch."
NUMBERS = ("rank", "local_rank", "world_size", "gpu_count", "pid")


def metrics_of(request: Request) -> dict[str, Any]:
    """Encodes the request as an ExportMetricsServiceRequest.

    Compilations, findings and memory become counts and gauges; the dashboard reads only regions and
    sequence numbers back.
    """
    metrics = list[dict[str, Any]]()
    for report in request.reports:
        metrics += _window(report)
    scope = {
        "scope": {"name": SCOPE, "version": request.instance.agent},
        "metrics": _merge_by_name(metrics),
    }
    return {
        "resourceMetrics": [
            {"resource": {"attributes": _resource(request.instance)}, "scopeMetrics": [scope]}
        ]
    }


def nanoseconds(moment: float) -> int:
    """Formats Unix seconds as nanoseconds; dividing restores the same number.

    A floating-point product would be off by some hundred nanoseconds.
    """
    whole = int(moment)
    return whole * NANOSECONDS + round((moment - whole) * NANOSECONDS)


def _resource(identity: Identity) -> list[dict[str, Any]]:
    """Builds the resource attributes: names, versions and numbers.

    Capabilities and components are not labels.
    """
    found: dict[str, Any] = {STANDARD[name]: getattr(identity, name) for name in STANDARD}
    plain = [
        item.name
        for item in fields(Identity)
        if item.name not in (*STANDARD, "capabilities", "components")
    ]
    found |= {OWN + name: getattr(identity, name) for name in plain}
    return _attributes({name: value for name, value in found.items() if value != ""})


def _window(report: Report) -> Iterator[dict[str, Any]]:
    """Yields the metrics of one window, each with one point."""
    times = {
        "startTimeUnixNano": str(nanoseconds(report.window[0])),
        "timeUnixNano": str(nanoseconds(report.window[1])),
    }
    for name, value in zip((FIRST, LAST), report.seq, strict=True):
        yield _gauge(name, "1", value, times)
    for region in report.regions:
        yield from _region(region, times)
    for (kind, outcome), count in Counter(
        (one.kind, one.outcome) for one in report.compiles
    ).items():
        yield _sum(
            "compilewatch.compilations",
            "{compilation}",
            count,
            {OWN + "kind": kind, OWN + "outcome": outcome},
            times,
        )
    for kind, count in sum(
        (Counter({one.kind: one.count}) for one in report.findings), Counter[str]()
    ).items():
        yield _sum("compilewatch.findings", "{finding}", count, {OWN + "kind": kind}, times)
    took = [one.seconds["total"] for one in report.compiles if "total" in one.seconds]
    if took:
        yield _histogram("compilewatch.compile.duration", Sketch.of(took), {}, times)
    yield from _gauges(report, times)


def _region(region: Region, times: dict[str, str]) -> Iterator[dict[str, Any]]:
    labels = {
        REGION: region.name,
        BUCKET: region.bucket,
        MODE: region.mode,
        RUNTIME: region.runtime,
        OUTERMOST: region.outermost,
    }
    for name, field in COUNTS.items():
        value = getattr(region, field)
        if value or field == "calls" or (field == "items" and value is not None):
            yield _sum(name, "{call}" if field != "items" else "{item}", value, labels, times)
    for cause, count in region.eager_by.items():
        yield _sum(EAGER, "{call}", count, {**labels, CAUSE: cause}, times)
    for name, field in SKETCHES.items():
        sketch = getattr(region, field)
        if sketch is not None:
            yield _histogram(name, sketch, labels, times)


def _gauges(report: Report, times: dict[str, str]) -> Iterator[dict[str, Any]]:
    gauges = report.gauges
    if gauges.host_rss is not None:
        yield _gauge("compilewatch.memory.host", "By", gauges.host_rss, times)
    if gauges.degraded_frames is not None:
        yield _gauge("compilewatch.frames.degraded", "{frame}", gauges.degraded_frames, times)
    for device in gauges.devices:
        for name in ("allocated", "peak", "reserved"):
            if getattr(device, name) is not None:
                yield _gauge(
                    f"compilewatch.memory.gpu.{name}",
                    "By",
                    getattr(device, name),
                    times,
                    {OWN + "gpu": device.index},
                )


def _gauge(
    name: str, unit: str, value: float, times: dict[str, str], labels: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "unit": unit,
        "gauge": {
            "dataPoints": [{**_number(value), **times, "attributes": _attributes(labels or {})}]
        },
    }


def _sum(
    name: str, unit: str, value: float, labels: dict[str, Any], times: dict[str, str]
) -> dict[str, Any]:
    points = [{**_number(value), **times, "attributes": _attributes(labels)}]
    return {
        "name": name,
        "unit": unit,
        "sum": {"aggregationTemporality": DELTA, "isMonotonic": True, "dataPoints": points},
    }


def _histogram(
    name: str, sketch: Sketch, labels: dict[str, Any], times: dict[str, str]
) -> dict[str, Any]:
    point = {
        **times,
        "count": str(sketch.count),
        "sum": sketch.sum,
        "scale": sketch.scale,
        "zeroCount": str(sketch.zero),
        "positive": {"offset": sketch.offset, "bucketCounts": [str(one) for one in sketch.bins]},
        "min": sketch.min,
        "max": sketch.max,
        "attributes": _attributes(labels),
    }
    return {
        "name": name,
        "unit": "s",
        "exponentialHistogram": {"aggregationTemporality": DELTA, "dataPoints": [point]},
    }


def _merge_by_name(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merges the points of all windows into one metric per name."""
    found: dict[str, dict[str, Any]] = {}
    for one in metrics:
        kind = next(key for key in ("gauge", "sum", "exponentialHistogram") if key in one)
        if one["name"] in found:
            found[one["name"]][kind]["dataPoints"] += one[kind]["dataPoints"]
        else:
            found[one["name"]] = one
    return list(found.values())


def _number(value: float) -> dict[str, Any]:
    return {"asDouble": value} if isinstance(value, float) else {"asInt": str(value)}


def _attributes(labels: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in labels.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}
