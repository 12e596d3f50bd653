"""OTLP converter: turns OpenTelemetry metrics into one wire request per instance. Values that
metrics cannot express are marked as unknown. Pure code."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from compilewatch.wire.messages import MAX_REPORTS, VERSION, Identity, Region, Report, Request
from compilewatch.wire.otlp import (
    BUCKET,
    CAUSE,
    COUNTS,
    DELTA,
    EAGER,
    FIRST,
    LAST,
    MODE,
    NANOSECONDS,
    NUMBERS,
    OUTERMOST,
    OWN,
    REGION,
    RUNTIME,
    SKETCHES,
    STANDARD,
)

from dashboard.ingest.numbering import derive_numbers
from dashboard.ingest.otlp.histograms import HistogramError, convert_histogram, is_exact

UNSUPPORTED = (
    "no",
    "OpenTelemetry metrics contain only counts and durations of calls; use compilewatch reports "
    "for the rest",
)
UNREPORTED_CAPABILITIES = ("compilations", "components", "memory")
LEGACY_ENVIRONMENT_KEY = "deployment.environment"
UNKNOWN = "unknown"
_LETTERS = string.digits + string.ascii_lowercase
_TEXTS = tuple(one.name for one in fields(Identity) if one.type == "str")


@dataclass
class Conversion:
    """Result of one request: a wire request for each instance and up to 32 windows, the number of
    rejected points, and the reason."""

    requests: list[Request] = field(default_factory=list)
    left_out: int = 0
    why: str = ""

    def refuse(self, points: int, why: str) -> None:
        """Rejects points. The first reason is reported."""
        self.left_out += points
        self.why = self.why or why


@dataclass
class _WindowBuilder:
    start: int
    end: int
    seq: dict[str, int] = field(default_factory=dict)
    regions: dict[tuple[Any, ...], Region] = field(default_factory=dict)
    even: bool = False
    """True if the bins of a histogram were wider than those of a sketch."""

    def report(self) -> Report:
        """The report, numbered by its sender, or else by its time."""
        seq = (
            (self.seq[FIRST], self.seq[LAST])
            if len(self.seq) == 2
            else derive_numbers(self.start, self.end)
        )
        regions = [
            _complete_region(one)
            for one in self.regions.values()
            if one.calls or one.latency is not None
        ]
        return Report(
            seq=seq, window=(self.start / NANOSECONDS, self.end / NANOSECONDS), regions=regions
        )


def convert_metrics(metrics: Mapping[str, Any], project_id: int, now: float) -> Conversion:
    """The wire requests in an ExportMetricsServiceRequest in its JSON form. Malformed metrics raise
    the error that Python raises."""
    taken, found = Conversion(), dict[str, tuple[dict[str, Any], dict[int, _WindowBuilder]]]()
    for one in metrics.get("resourceMetrics", ()):
        told = _parse_attributes((one.get("resource") or {}).get("attributes", ()))
        windows = found.setdefault(repr(sorted(told.items())), (told, {}))[1]
        for metric in (
            metric for scope in one.get("scopeMetrics", ()) for metric in scope.get("metrics", ())
        ):
            _convert_metric(metric, windows, taken)
    for told, windows in found.values():
        if windows:
            taken.requests += _build_requests(
                told, [windows[end] for end in sorted(windows)], project_id, now
            )
    return taken


def _convert_metric(
    metric: Mapping[str, Any], windows: dict[int, _WindowBuilder], taken: Conversion
) -> None:
    name = str(metric.get("name", ""))
    wanted = (
        "exponentialHistogram" if name in SKETCHES else "gauge" if name in (FIRST, LAST) else "sum"
    )
    if wanted == "sum" and name not in COUNTS and name != EAGER:
        return
    held = metric.get(wanted)
    points = (held or {}).get("dataPoints", ())
    if held is None:
        taken.refuse(
            1, f"{name} is not a {wanted}; of histograms, only exponential ones are accepted"
        )
    elif wanted != "gauge" and held.get("aggregationTemporality") not in (
        DELTA,
        "AGGREGATION_TEMPORALITY_DELTA",
    ):
        taken.refuse(
            len(points),
            f"{name} is cumulative: set OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta",
        )
    elif wanted == "exponentialHistogram" and metric.get("unit") != "s":
        taken.refuse(
            len(points), f"the unit of {name} is {str(metric.get('unit', ''))[:20]!r}, expected 's'"
        )
    else:
        for point in points:
            _convert_point(name, point, windows, taken)


def _convert_point(
    name: str, point: Mapping[str, Any], windows: dict[int, _WindowBuilder], taken: Conversion
) -> None:
    labels, start, end = (
        _parse_attributes(point.get("attributes", ())),
        int(point.get("startTimeUnixNano", 0)),
        int(point["timeUnixNano"]),
    )
    if name not in (FIRST, LAST) and not str(labels.get(REGION, "")).strip():
        return taken.refuse(1, f"a point of {name} has no attribute {REGION}")
    if not 0 < start <= end:
        return taken.refuse(1, f"a point of {name} has no start time")
    window = windows.setdefault(end, _WindowBuilder(start, end))
    window.start = min(window.start, start)
    if name in (FIRST, LAST):
        window.seq[name] = int(_number(point))
        return None
    region = _find_region(window, labels)
    if name == EAGER:
        region.eager_by[str(labels.get(CAUSE, UNKNOWN))] = int(_number(point))
    elif name in COUNTS:
        setattr(
            region,
            COUNTS[name],
            _number(point) if name == "compilewatch.items" else int(_number(point)),
        )
    else:
        try:
            setattr(region, SKETCHES[name], convert_histogram(point))
        except HistogramError as reason:
            return taken.refuse(1, f"{name}: {reason}")
        window.even = window.even or not is_exact(point)
    return None


def _find_region(window: _WindowBuilder, labels: Mapping[str, Any]) -> Region:
    texts = tuple(
        str(labels.get(name, otherwise))
        for name, otherwise in ((REGION, ""), (BUCKET, ""), (MODE, UNKNOWN), (RUNTIME, UNKNOWN))
    )
    outermost = labels.get(OUTERMOST, True) is not False
    key = (*texts, outermost)
    if key not in window.regions:
        name, bucket, mode, runtime = texts
        window.regions[key] = Region(
            name=name, calls=0, bucket=bucket, mode=mode, runtime=runtime, outermost=outermost
        )
    return window.regions[key]


def _complete_region(region: Region) -> Region:
    """Completes a region without call counters: its calls are the timed calls, and their execution
    mode is unknown."""
    if not region.calls and region.latency is not None:
        region.calls = region.unknown = region.latency.count
    return region


def _build_requests(
    told: Mapping[str, Any], windows: list[_WindowBuilder], project_id: int, now: float
) -> Iterator[Request]:
    reports = [one.report() for one in windows]
    identity = _build_identity(
        told, project_id, reports[0].window[0], even=any(one.even for one in windows)
    )
    for at in range(0, len(reports), MAX_REPORTS):
        yield Request(
            v=VERSION, sent=now, instance=identity, reports=reports[at : at + MAX_REPORTS]
        )


def _build_identity(
    told: Mapping[str, Any], project_id: int, began: float, *, even: bool
) -> Identity:
    """The identity, from OpenTelemetry's attribute names and the agent's. A foreign ID is replaced
    by a derived one, which is the same for the same process."""
    known: dict[str, Any] = {
        name: str(told.get(OWN + name, told.get(STANDARD.get(name, ""), ""))) for name in _TEXTS
    }
    known["model"], known["version"] = known["model"] or UNKNOWN, known["version"] or UNKNOWN
    known["environment"] = (
        known["environment"] or str(told.get(LEGACY_ENVIRONMENT_KEY, "")) or "production"
    )
    numbers = {
        name: _whole_number(told.get(OWN + name, told.get(STANDARD.get(name, ""))))
        for name in NUMBERS
    }
    known |= {name: value for name, value in numbers.items() if value is not None}
    known["kind"], known["agent"] = known["kind"] or "serving", known["agent"] or "OpenTelemetry"
    started = told.get(OWN + "started")
    known["started"] = (
        float(started)
        if isinstance(started, (int, float)) and not isinstance(started, bool)
        else began
    )
    known["simulated"] = told.get(OWN + "simulated") is True
    if not (len(known["id"]) == 26 and set(known["id"]) <= set(_LETTERS)):
        known["id"] = _derive_id(project_id, told)
    blind = dict.fromkeys(UNREPORTED_CAPABILITIES, UNSUPPORTED)
    if even:
        blind["latency"] = (
            "partly",
            "the histogram bins are wider than the sketch bins and were spread evenly: set a "
            "larger max_size",
        )
    return Identity(**known, capabilities=blind)


def _derive_id(project_id: int, told: Mapping[str, Any]) -> str:
    """An ID that is the same for the same process: a hash of its attributes without the release of
    the SDK."""
    said = [f"{name}={told[name]}" for name in sorted(told) if not name.startswith("telemetry.")]
    seed = "\0".join((str(project_id), *said)).encode("utf-8", "replace")
    number, letters = int.from_bytes(hashlib.blake2b(seed, digest_size=20).digest(), "big"), ""
    for _ in range(26):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return letters


def _whole_number(value: Any) -> int | None:
    return (
        int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 31
        else None
    )


def _number(point: Mapping[str, Any]) -> float:
    return int(point["asInt"]) if "asInt" in point else float(point["asDouble"])


def _parse_attributes(pairs: Any) -> dict[str, Any]:
    """Attributes by name as Python values; lists and maps are left out."""
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.get("value") or {}
        if "intValue" in value:
            found[str(pair["key"])] = int(value["intValue"])
        elif "doubleValue" in value:
            found[str(pair["key"])] = float(value["doubleValue"])
        elif value and next(iter(value)) in ("stringValue", "boolValue"):
            found[str(pair["key"])] = next(iter(value.values()))
    return found
