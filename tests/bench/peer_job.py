"""The job of bench_peers: reports twenty calls per second to one client with default settings, and
counts them in a ledger that survives a kill."""

from __future__ import annotations

import atexit
import mmap
import os
import sys
import time
from collections.abc import Callable

CALLS_A_SECOND = 20
Client = tuple[Callable[[], object], Callable[[], object]]
"""Two functions: one records a call, the other sends everything that waits, as a child must before
`os._exit`."""


def compilewatch_client(endpoint: str) -> Client:
    """The agent."""
    import compilewatch

    compilewatch.init(model="peer", endpoint=endpoint, api_key="k")
    return compilewatch.watch(lambda: None, name="forward"), compilewatch.shutdown


def sentry_client(endpoint: str) -> Client:
    """sentry-sdk: one event per call."""
    import sentry_sdk

    sentry_sdk.init(dsn=endpoint.replace("://", "://key@") + "/1")
    return lambda: sentry_sdk.capture_message("call"), sentry_sdk.flush


def opentelemetry_client(endpoint: str) -> Client:
    """OpenTelemetry: one span per call, in batches, over OTLP and HTTP."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint + "/v1/traces")))
    tracer = provider.get_tracer("job")

    def call() -> None:
        with tracer.start_as_current_span("forward"):
            pass

    return call, provider.force_flush


CLIENTS = {
    "compilewatch": compilewatch_client,
    "sentry-sdk": sentry_client,
    "OpenTelemetry": opentelemetry_client,
}


def main(client: str, endpoint: str, ledger: str, seconds: float, fork_at: float) -> None:
    """Calls for `seconds`, then ends like any program. At `fork_at` seconds, unless 0, forks a
    child that makes 20 calls."""
    atexit.register(
        stamp, f"{ledger}.flushed"
    )  # registered first, so called last: after what the client does at the end
    call, flush = CLIENTS[client](endpoint)
    with open(ledger, "r+b") as file:  # noqa: PTH123 - by its descriptor
        counted = mmap.mmap(file.fileno(), 8)
    calls, began, forked = 0, time.monotonic(), fork_at == 0.0
    while time.monotonic() - began < seconds:
        call()
        calls += 1
        counted[:8] = calls.to_bytes(8, "little")
        time.sleep(1 / CALLS_A_SECOND)
        if not forked and time.monotonic() - began > fork_at:
            forked = True
            fork(call, flush, f"{ledger}.child")
    stamp(f"{ledger}.ended")


def fork(call: Callable[[], object], flush: Callable[[], object], done: str) -> None:
    """Forks a child that calls, sends and ends; the parent does not wait for the child."""
    if os.fork() == 0:
        for _ in range(20):
            call()
        flush()
        stamp(done)
        os._exit(0)


def stamp(path: str) -> None:
    """Writes the current time to a file."""
    with open(path, "w") as file:  # noqa: PTH123 - nothing more is loaded in a child
        file.write(str(time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
