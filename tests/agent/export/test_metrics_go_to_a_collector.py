"""With the endpoint otlp:ADDRESS, windows go to an OpenTelemetry collector with the same
guarantees: kept, retried, each counted once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import compilewatch
import pytest
from compilewatch import agent
from compilewatch.wire.codec import inflate

PATIENCE = 60.0


class Collector:
    """Accepts metrics, unless a test sets another status."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.taken: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.news = threading.Condition()
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                metrics = json.loads(inflate(self.rfile.read(int(self.headers["Content-Length"]))))
                with told.news:
                    told.asked.append(
                        (self.path, {name.lower(): value for name, value in self.headers.items()})
                    )
                    status = told.statuses.pop(0) if told.statuses else 200
                    if status == 200:
                        told.taken.append(metrics)
                    told.news.notify_all()
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"otlp:http://127.0.0.1:{self.server.server_address[1]}/base"

    def values(self, name: str) -> list[Any]:
        """The values of all data points of that metric."""
        found = []
        for metrics in self.taken:
            for metric in metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
                if metric["name"] == name:
                    found += next(
                        metric[kind]
                        for kind in ("sum", "gauge", "exponentialHistogram")
                        if kind in metric
                    )["dataPoints"]
        return found

    def wait(self, until: Callable[[], bool]) -> None:
        with self.news:
            assert self.news.wait_for(until, PATIENCE), self.asked


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    agent.shutdown()
    found.server.shutdown()
    found.server.server_close()


def calls(collector: Collector) -> int:
    return sum(int(point["asInt"]) for point in collector.values("compilewatch.calls"))


def test_calls_arrive_as_delta_counts_with_their_instance(collector: Collector) -> None:
    assert agent.init(model="ranker", version="7", endpoint=collector.endpoint, interval=0.1)
    scored = compilewatch.watch(lambda: None, name="score")
    for _ in range(50):
        scored()
    collector.wait(lambda: calls(collector) == 50)
    path, headers = collector.asked[0]
    assert (
        path == "/base/v1/metrics"
        and headers["content-type"] == "application/json"
        and "authorization" not in headers
    )
    resource = collector.taken[0]["resourceMetrics"][0]["resource"]["attributes"]
    told = {one["key"]: one["value"] for one in resource}
    assert told["service.name"] == {"stringValue": "ranker"} and told["service.version"] == {
        "stringValue": "7"
    }
    assert told["compilewatch.simulated"] == {"boolValue": False}
    assert sum(int(point["count"]) for point in collector.values("compilewatch.duration")) == 50


def test_temporarily_refused_metrics_are_sent_again_and_nothing_twice(collector: Collector) -> None:
    collector.statuses = [503, 429, 503]
    assert agent.init(
        model="ranker", version="7", endpoint=collector.endpoint, api_key="secret", interval=0.1
    )
    scored = compilewatch.watch(lambda: None, name="score")
    for _ in range(50):
        scored()
    collector.wait(lambda: calls(collector) == 50 and len(collector.taken) > 1)
    assert {headers["authorization"] for _, headers in collector.asked} == {"Bearer secret"}
    first, last = (
        sorted(int(one["asInt"]) for one in collector.values(f"compilewatch.window.{name}"))
        for name in ("first", "last")
    )
    assert first[0] == 1 and first[1:] == [number + 1 for number in last[:-1]]
