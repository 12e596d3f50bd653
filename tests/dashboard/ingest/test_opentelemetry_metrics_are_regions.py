"""OpenTelemetry metrics as reports: metrics of an agent arrive unchanged, and histograms of any SDK
become regions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from compilewatch.export.otlp import OtlpTransport
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Compile, Identity, Region, Report, Request
from compilewatch.wire.otlp import metrics_of
from compilewatch.wire.sketch import SCALE, Sketch
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance, RegionMinute, Series
from dashboard.ingest.batch import identity_read, report_read
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.models import InboxRow
from dashboard.ingest.otlp.convert import convert_metrics
from dashboard.ingest.otlp.histograms import HistogramError, convert_histogram
from dashboard.ingest.otlp.protobuf import decode_metrics
from tests.dashboard.ingest.conftest import Endpoint
from tests.dashboard.requests import region_make, request_make

PATH = "/api/v1/otlp"
METRICS = f"{PATH}/v1/metrics"
PROTOBUF = {"Content-Type": "application/x-protobuf", "Content-Encoding": None}
TIMES = {"startTimeUnixNano": "1795000000000000000", "timeUnixNano": "1795000010000000000"}

durations = st.lists(st.one_of(st.floats(1e-9, 1e9), st.just(0.0)), min_size=1, max_size=40)
counts = st.integers(0, 1 << 40)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    sketches = {
        name: draw(st.none() | durations.map(Sketch.of)) for name in ("latency", "gpu", "warmup")
    }
    causes = draw(
        st.dictionaries(st.sampled_from(("limit", "stance", "error")), st.integers(1, 1 << 40))
    )
    numbers = {
        name: draw(counts) for name in ("errors", "compiled", "partial", "unknown", "sampled")
    }
    name = draw(
        st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=20).filter(
            lambda one: one.strip()
        )
    )
    items = draw(st.none() | st.floats(0, 1e15))
    mode = draw(st.sampled_from(("default", "max-autotune", "eager")))
    return Region(
        name,
        draw(st.integers(1, 1 << 40)),
        draw(st.sampled_from(("", "2^12"))),
        mode,
        items=items,
        eager_by=causes,
        **numbers,
        **sketches,
    )


def there_and_back(request: Request) -> list[Request]:
    """A round trip through OpenTelemetry's own message classes, as JSON and as protobuf."""
    told = metrics_of(request)
    message = ParseDict(told, ExportMetricsServiceRequest())
    plain, binary = (
        convert_metrics(one, 1, request.sent)
        for one in (json.loads(json.dumps(told)), decode_metrics(message.SerializeToString()))
    )
    assert (plain.left_out, plain.why, plain.requests) == (0, "", binary.requests)
    return plain.requests


@settings(max_examples=60)
@given(
    found=st.lists(regions(), max_size=4, unique_by=lambda one: (one.name, one.bucket, one.mode)),
    end=st.floats(1.7e9, 1.9e9),
)
def test_regions_arrive_unchanged(found: list[Region], end: float) -> None:
    request = request_make(
        end=end,
        model="ranker",
        rank=3,
        world_size=8,
        host="gpu-7",
        node="node-7",
        pid=17,
        gpu="NVIDIA H200",
        agent="0.1.0",
    )
    request.reports = [Report(seq=(4, 7), window=(end - 10.0, end), regions=found)]
    [back] = there_and_back(request)
    assert back.reports == request.reports
    assert _plain(back.instance) == _plain(request.instance)


def test_several_windows_stay_separate_and_keep_their_numbers() -> None:
    request = request_make(end=1_795_000_000.0, minutes=40)
    first, second = there_and_back(request)
    assert [(one.seq, one.window) for part in (first, second) for one in part.reports] == [
        (one.seq, one.window) for one in request.reports
    ]


def test_compilations_are_counts_for_other_backends_and_no_region_here() -> None:
    request = request_make(end=1_795_000_000.0)
    compiled = Compile(
        at=1_795_000_000.0, id="0/0", kind="first", outcome="ok", seconds={"total": 2.5}
    )
    request.reports[0].compiles = [compiled, compiled]
    scope = metrics_of(request)["resourceMetrics"][0]["scopeMetrics"][0]
    told = {one["name"]: one for one in scope["metrics"]}
    assert told["compilewatch.compilations"]["sum"]["dataPoints"][0]["asInt"] == "2"
    assert (
        told["compilewatch.compile.duration"]["exponentialHistogram"]["dataPoints"][0]["sum"] == 5.0
    )
    assert {"compilewatch.memory.host", "compilewatch.memory.gpu.allocated"} <= told.keys()
    assert [one.name for one in there_and_back(request)[0].reports[0].regions] == ["forward"]


def test_metrics_of_the_agent_are_stored_once_and_fold(endpoint: Endpoint) -> None:
    request = request_make(end=clock.unix() - 5.0, minutes=3)
    for report in request.reports:
        report.regions.append(
            region_make(name="encode", calls=7, errors=2, compiled=4, eager_by={"limit": 1}, seed=9)
        )
    transport = OtlpTransport(f"http://127.0.0.1:{endpoint.port}{PATH}", endpoint.key)
    for _ in range(2):
        answer = transport.send(dumps(request))
        assert (answer.status, answer.problem) == (200, "") and answer.ack is not None
        assert answer.ack.acked == [report.seq for report in request.reports]
    rows = InboxRow.objects.order_by("seq_first")
    assert [report_read(bytes(row.report)).regions for row in rows] == [
        report.regions for report in request.reports
    ]
    assert identity_read(bytes(rows[0].identity)).id == request.instance.id
    fold_all()
    assert sum(RegionMinute.objects.values_list("calls", flat=True)) == 3 * 107
    assert Instance.objects.get().capabilities["compilations"][0] == "no"


@pytest.fixture
def meter(endpoint: Endpoint) -> Iterator[Any]:
    """OpenTelemetry's own SDK; a flush sends its metrics to the dashboard."""
    address, headers = (
        f"http://127.0.0.1:{endpoint.port}{METRICS}",
        {"Authorization": f"Bearer {endpoint.key}"},
    )
    exporter = OTLPMetricExporter(
        address, headers=headers, preferred_temporality={Histogram: AggregationTemporality.DELTA}
    )
    fine = View(
        instrument_name="compilewatch.duration",
        aggregation=ExponentialBucketHistogramAggregation(max_size=640),
    )
    service = {
        "service.name": "ranker",
        "service.version": "7",
        "deployment.environment.name": "staging",
        "host.name": "gpu-7",
    }
    provider = MeterProvider(
        [PeriodicExportingMetricReader(exporter, 3.6e6)], Resource.create(service), views=[fine]
    )
    yield provider
    provider.shutdown()


def test_a_histogram_of_any_sdk_with_the_name_and_the_attribute_is_a_region(
    meter: MeterProvider,
) -> None:
    chance = random.Random(5)
    histogram = meter.get_meter("service").create_histogram("compilewatch.duration", unit="s")
    told = list[list[float]]()
    for _ in range(2):
        told.append([chance.lognormvariate(-5.0, 1.0) for _ in range(500)])
        for seconds in told[-1]:
            histogram.record(
                seconds, {"compilewatch.region": "answer", "compilewatch.bucket": "2^12"}
            )
        assert meter.force_flush()
    rows = list(InboxRow.objects.order_by("seq_first"))
    assert rows[0].seq_last + 1 == rows[1].seq_first  # consecutive windows have consecutive numbers
    for row, seconds in zip(rows, told, strict=True):
        [region] = report_read(bytes(row.report)).regions
        assert region.latency is not None
        assert (region.name, region.bucket, region.calls, region.unknown, region.sampled) == (
            "answer",
            "2^12",
            500,
            500,
            0,
        )
        assert list(region.latency.items()) == list(Sketch.of(seconds).items())
        assert (region.latency.min, region.latency.max) == (min(seconds), max(seconds))
    identity = identity_read(bytes(rows[0].identity))
    assert (identity.model, identity.version, identity.environment, identity.host) == (
        "ranker",
        "7",
        "staging",
        "gpu-7",
    )
    assert (
        "latency" not in identity.capabilities and identity.capabilities["compilations"][0] == "no"
    )
    fold_all()
    assert Series.objects.get().stratum.mode == "unknown"


def test_wider_bins_are_spread_and_marked_as_partial() -> None:
    [request] = convert_metrics(
        _metrics(
            {**TIMES, "scale": 3, "count": 10, "positive": {"offset": 2, "bucketCounts": [10]}}
        ),
        1,
        0.0,
    ).requests
    [region] = request.reports[0].regions
    assert region.latency is not None and list(region.latency.items()) == [
        (8, 3),
        (9, 3),
        (10, 2),
        (11, 2),
    ]
    assert request.instance.capabilities["latency"][0] == "partly"


@given(values=durations, finer=st.integers(0, 8))
def test_finer_bins_are_joined_exactly(values: list[float], finer: int) -> None:
    # Each bin of the sketch as the first of 2**finer finer bins.
    sketch = Sketch.of(values)
    spread = [
        count
        for index in range(len(sketch.bins))
        for count in (sketch.bins[index], *[0] * ((1 << finer) - 1))
    ]
    if len(spread) > 8192:
        return
    point = {
        "scale": SCALE + finer,
        "positive": {"offset": sketch.offset << finer, "bucketCounts": spread},
        "zeroCount": sketch.zero,
    }
    joined = convert_histogram({**point, "min": sketch.min, "max": sketch.max, "sum": sketch.sum})
    assert joined == sketch


@pytest.mark.parametrize(
    ("point", "says"),
    [
        (
            {"count": 3, "scale": 5, "positive": {"bucketCounts": [1]}},
            "count is 3, but the bins contain 1",
        ),
        ({"scale": 5, "positive": {"bucketCounts": [-1, 2]}}, "must not be negative"),
        ({"scale": 21, "positive": {"bucketCounts": [1]}}, "cannot contain durations"),
        ({"scale": -9, "positive": {"bucketCounts": [1]}}, "cannot contain durations"),
        ({"scale": 5, "positive": {"bucketCounts": [1] * 9000}}, "cannot contain durations"),
        ({"scale": 5, "negative": {"bucketCounts": [1]}}, "below zero"),
        (
            {"scale": 5, "positive": {"offset": 3, "bucketCounts": [1]}, "max": 99.0},
            "max lies outside",
        ),
    ],
)
def test_an_invalid_histogram_is_skipped_with_the_reason(point: dict[str, Any], says: str) -> None:
    with pytest.raises(HistogramError, match=says):
        convert_histogram(point)
    taken = convert_metrics(_metrics({**TIMES, **point}), 1, 0.0)
    assert taken.left_out == 1 and says in taken.why


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"unit": "ms"}, "the unit of compilewatch.duration is 'ms', expected 's'"),
        ({"temporality": 2}, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta"),
        ({"kind": "histogram"}, "only exponential ones"),
        ({"labels": {}}, "has no attribute compilewatch.region"),
        ({"times": {"timeUnixNano": "5"}}, "has no start time"),
    ],
)
def test_metrics_that_break_the_convention_are_skipped_and_reported(
    endpoint: Endpoint, change: dict[str, Any], says: str
) -> None:
    times = change.pop("times", TIMES)
    metrics = _metrics(
        {**times, "scale": 5, "count": 1, "positive": {"bucketCounts": [1]}}, **change
    )
    answer = endpoint.send(
        json.dumps(metrics).encode(), headers={"Content-Encoding": None}, path=METRICS
    )
    assert answer.status == 200 and answer.json["partialSuccess"]["rejectedDataPoints"] == "1"
    assert says in answer.json["partialSuccess"]["errorMessage"]
    if change.get("kind") is None:
        body = ParseDict(metrics, ExportMetricsServiceRequest()).SerializeToString()
        told = ExportMetricsServiceResponse.FromString(
            endpoint.send(body, headers=PROTOBUF, path=METRICS).body
        ).partial_success
        assert told.rejected_data_points == 1 and says in told.error_message
    assert not InboxRow.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"resourceMetrics": 5}',
        b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [7]}]}]}',
    ],
)
def test_a_body_without_metrics_is_a_400(endpoint: Endpoint, body: bytes) -> None:
    answer = endpoint.send(body, headers={"Content-Encoding": None}, path=METRICS)
    assert answer.status == 400 and answer.json["code"] in ("bad_request", "not_json")


@given(body=st.binary(max_size=300))
def test_any_bytes_are_metrics_or_refused(body: bytes) -> None:
    try:
        found = decode_metrics(body)
    except RefusalError as refused:
        assert refused.code == "bad_request"
    else:
        assert isinstance(found, dict)


def test_other_metrics_are_accepted_and_ignored(endpoint: Endpoint) -> None:
    metrics = _metrics({**TIMES, "scale": 5}, name="http.server.request.duration")
    assert (
        endpoint.send(
            json.dumps(metrics).encode(), headers={"Content-Encoding": None}, path=METRICS
        ).json
        == {}
    )
    assert not InboxRow.objects.exists()


def _metrics(
    point: dict[str, Any], *, name: str = "compilewatch.duration", **change: Any
) -> dict[str, Any]:
    """One metric with one point."""
    labels = change.get("labels", {"compilewatch.region": "answer"})
    point = {
        **point,
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in labels.items()
        ],
    }
    if "kind" in change:
        point = {name: point[name] for name in ("startTimeUnixNano", "timeUnixNano", "attributes")}
    held = {"aggregationTemporality": change.get("temporality", 1), "dataPoints": [point]}
    metric = {
        "name": name,
        "unit": change.get("unit", "s"),
        change.get("kind", "exponentialHistogram"): held,
    }
    return {"resourceMetrics": [{"resource": {}, "scopeMetrics": [{"metrics": [metric]}]}]}


def _plain(identity: Identity) -> dict[str, Any]:
    return {
        name: getattr(identity, name)
        for name in Identity.__slots__
        if name not in ("capabilities", "components")
    }
