"""Together with OpenTelemetry, Datadog's tracer or gevent the agent sends as usual, and none of
them sees a span or a log line of the agent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import environment, run
from tests.agent.server import Dashboard, assert_sent_once

WORK = """
import compilewatch
compilewatch.init(model="m", interval=0.1)
call = compilewatch.watch(lambda: None, name="forward")
"""
OPENTELEMETRY = """
import json, logging, sys, time, urllib.request
import httpx, requests, urllib3
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.logging import LoggingInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.threading import ThreadingInstrumentor
from opentelemetry.instrumentation.urllib import URLLibInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import InMemoryLogExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, logs = InMemorySpanExporter(), InMemoryLogExporter()

def instrument():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    lines = LoggerProvider()
    lines.add_log_record_processor(SimpleLogRecordProcessor(logs))
    set_logger_provider(lines)
    logging.basicConfig(level=logging.DEBUG, handlers=[LoggingHandler(logging.DEBUG, lines)])
    for one in (HTTPXClientInstrumentor, RequestsInstrumentor, ThreadingInstrumentor, URLLibInstrumentor, URLLib3Instrumentor):
        one().instrument()
    LoggingInstrumentor().instrument(set_logging_format=True)

{first}
{second}
own = sys.argv[1]
with trace.get_tracer("job").start_as_current_span("the job's"):
    for _ in range(8):
        call()
        time.sleep(0.1)
    urllib.request.urlopen(own).read(), requests.get(own), httpx.get(own), urllib3.PoolManager().request("GET", own)
logging.getLogger("job").warning("the job's")
compilewatch.shutdown()
urls = [span.attributes.get("http.url") or span.attributes.get("url.full", "") for span in spans.get_finished_spans()]
print(json.dumps([sorted(urls), [str(one.log_record.body) for one in logs.get_finished_logs()]]))
"""
GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, os
{work}
slow = compilewatch.watch(lambda n: (gevent.sleep(0.01), call()), name="slow")
greenlets = [gevent.spawn(slow, n) for n in range(50)]
gevent.joinall(greenlets)
while len(compilewatch.agent.AGENT.worker.reporter.outbox):
    gevent.sleep(0.001)
child = os.fork()
if child == 0:
    gevent.joinall([gevent.spawn(slow, n) for n in range(5)])
    gevent.sleep(1.5)
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
DATADOG = """
import sys, time, requests
{work}
for _ in range(8):
    call()
    time.sleep(0.1)
requests.get(sys.argv[1] + "/by-requests")
compilewatch.shutdown()
"""


@pytest.mark.parametrize(
    "order", [("instrument()", WORK), (WORK, "instrument()")], ids=["before us", "after us"]
)
def test_opentelemetry_sees_the_job_alone(
    dashboard: Dashboard, own: Own, order: tuple[str, str]
) -> None:
    program = OPENTELEMETRY.replace("{first}", order[0]).replace("{second}", order[1])
    done = run(program, own.url, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    urls, lines = json.loads(done.stdout)
    assert {url.rstrip("/") for url in urls} == {"", own.url} and len(urls) >= 5
    assert any(line.endswith("the job's") for line in lines)
    assert not any(str(dashboard.port) in text for text in (*urls, *lines, done.stderr))
    assert_untouched(dashboard)
    assert dashboard.calls("forward") == 8 and len(dashboard.requests) > 1


def test_gevent_runs_the_agent_among_its_greenlets(dashboard: Dashboard) -> None:
    done = run(GEVENT.replace("{work}", WORK), ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, "")
    assert (dashboard.calls("slow"), dashboard.calls("forward")) == (55, 55)
    assert len({request["instance"]["id"] for request in dashboard.requests}) == 2
    # Greenlets continue in a child: the greenlet of the parent's agent must not continue as the
    # parent.
    assert_sent_once(dashboard)


def test_ddtrace_sees_the_job_alone(dashboard: Dashboard, own: Own) -> None:
    settings = environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY) | {
        "DD_TRACE_AGENT_URL": own.url,
        "DD_TRACE_HTTPLIB_ENABLED": "true",
        "DD_TRACE_URLLIB3_ENABLED": "true",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
        "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    }
    words = [
        sys.executable,
        "-m",
        "ddtrace.commands.ddtrace_run",
        sys.executable,
        "-c",
        DATADOG.replace("{work}", WORK),
        own.url,
    ]
    done = subprocess.run(
        words, env=settings, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    traced = b"".join(body for path, body in own.got if path.startswith("/v0."))
    assert b"/by-requests" in traced
    assert str(dashboard.port).encode() not in traced and b"/api/v1/reports" not in traced
    assert_untouched(dashboard)
    assert dashboard.calls("forward") == 8


def assert_untouched(dashboard: Dashboard) -> None:
    """No tracer wrote into our requests: a tracer would have begun a span for each."""
    names = {name.lower() for headers in dashboard.headers for name in headers}
    assert not {
        name
        for name in names
        if name.startswith(("x-datadog", "traceparent", "tracestate", "baggage", "b3"))
    }


class Own:
    """A server of the job, which also takes the place of Datadog's collector."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def own() -> Iterator[Own]:
    server = Own()
    yield server
    server.stop()


def _handler(own: Own) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            own.got.append((self.path, self.rfile.read(length)))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_POST = do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    return Handler
