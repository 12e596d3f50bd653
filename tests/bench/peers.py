"""Common libraries for timing calls, each with the code that times one call: the peers in the
benchmark tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Observe = Callable[[float], Any]


def prometheus() -> Observe:
    """One observation of a histogram."""
    import prometheus_client

    histogram = prometheus_client.Histogram(
        "bench_seconds", "A call.", registry=prometheus_client.CollectorRegistry()
    )
    return histogram.observe


def opentelemetry() -> Observe:
    """One record of a histogram without a reader."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    meter = MeterProvider(
        metric_readers=[InMemoryMetricReader()], shutdown_on_exit=False
    ).get_meter("bench")
    return meter.create_histogram("bench_seconds").record


def dogstatsd() -> Observe:
    """One distribution sent to a local port."""
    from datadog.dogstatsd import DogStatsd

    client = DogStatsd(host="127.0.0.1", port=18125, disable_telemetry=True)
    return lambda seconds: client.distribution("bench.seconds", seconds)


def ddsketch() -> Observe:
    """One value added to a sketch, without a lock."""
    from ddsketch import DDSketch

    return DDSketch().add


PEERS = {
    "prometheus_client, observe": prometheus,
    "ddsketch, add": ddsketch,
    "OpenTelemetry, record": opentelemetry,
    "DogStatsD, distribution": dogstatsd,
}


def timed(fn: Callable[..., Any], observe: Observe) -> Callable[..., Any]:
    """The function with a pair of clock reads and one observation."""
    clock = time.perf_counter

    def call(*args: Any) -> Any:
        start = clock()
        try:
            return fn(*args)
        finally:
            observe(clock() - start)

    return call
