"""A request goes only to the configured address: no redirect, no proxy of the environment, no
library in between."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from compilewatch.export.transport import Answer, HttpTransport
from compilewatch.wire.codec import inflate

from tests.dashboard.common.wire_server import (
    Handler,
    WireServer,
    answering,
    request_read,
    wire_server,
)

BODY = b'{"v":1,"reports":[]}'
OURS = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"cw": 1, "acked": [], "next_seq": 1}'
KEY = "cw_ing_test"


def kept(requests: list[bytes], answer: bytes = OURS) -> Handler:
    """Records each request and answers it."""

    def handle(connection: socket.socket) -> None:
        requests.append(request_read(connection))
        connection.sendall(answer)

    return handle


def test_a_request_is_one_plain_post(tmp_path: Path) -> None:
    requests: list[bytes] = []
    with wire_server(kept(requests)) as server:
        answer = HttpTransport(f"http://127.0.0.1:{server.port}/behind/a%20path/", KEY).send(BODY)
    assert answer.ack is not None
    head, _, body = requests[0].partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "POST /behind/a%20path/api/v1/reports HTTP/1.1"
    found = dict(line.split(": ", 1) for line in headers)
    assert found["Host"] == f"127.0.0.1:{server.port}"
    assert found["Authorization"] == f"Bearer {KEY}"
    assert found["Connection"] == "close"
    assert int(found["Content-Length"]) == len(body)
    assert inflate(body) == BODY
    assert len(found) == len(headers) == 8


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with wire_server(lambda connection: None) as canary:
        there = f"http://127.0.0.1:{canary.port}/api/v1/reports".encode()
        redirect = b"HTTP/1.1 %d Moved\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (
            status,
            there,
        )
        with wire_server(answering(redirect)) as server:
            answer = HttpTransport(f"http://127.0.0.1:{server.port}", KEY).send(BODY)
        assert (answer.status, answer.ack, answer.final) == (status, None, False)
        assert (server.connections, canary.connections) == (1, 0)


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with wire_server(lambda connection: None) as canary, wire_server(answering(OURS)) as server:
        for name in (
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ):
            monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
        assert HttpTransport(f"http://127.0.0.1:{server.port}", KEY).send(BODY).ack is not None
        assert canary.connections == 0


def test_the_configured_proxy_is_used_for_plain_http() -> None:
    requests: list[bytes] = []
    with wire_server(kept(requests)) as proxy:
        answer = through(proxy, "http://dashboard.example:8080/base").send(BODY)
    assert answer.ack is not None
    head = requests[0].decode("latin-1")
    assert head.startswith(
        "POST http://dashboard.example:8080/base/api/v1/reports HTTP/1.1\r\nHost: "
        "dashboard.example:8080\r\n"
    )
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'ada:pa ss').decode()}\r\n" in head


def test_a_proxy_is_asked_for_a_tunnel_to_https_and_sees_no_key() -> None:
    asked: list[bytes] = []

    def refuse(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    with wire_server(refuse) as proxy, pytest.raises(OSError, match="the proxy answered HTTP 407"):
        through(proxy, "https://dashboard.example").send(BODY)
    assert asked[0].startswith(
        b"CONNECT dashboard.example:443 HTTP/1.1\r\nHost: dashboard.example:443\r\nProxy-Authorization: Basic "
    )
    assert KEY.encode() not in asked[0]


def through(proxy: WireServer, endpoint: str) -> HttpTransport:
    return HttpTransport(endpoint, KEY, f"http://ada:pa%20ss@127.0.0.1:{proxy.port}")


def test_a_non_ascii_name_is_sent_in_its_dns_form() -> None:
    requests: list[bytes] = []
    with wire_server(kept(requests)) as proxy:
        through(proxy, "http://bücher.example").send(BODY)
    assert b"Host: xn--bcher-kva.example\r\n" in requests[0]


TRACED = """
import http.client, json, sys
from opentelemetry import context, trace
from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled, is_instrumentation_enabled
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import socket
seen, real = [], socket.getaddrinfo
def getaddrinfo(*given, **named):
    seen.append((is_instrumentation_enabled(), is_http_instrumentation_enabled()))
    return real(*given, **named)
socket.getaddrinfo = getaddrinfo
def patched(self, *given, **named):
    raise AssertionError("a patched method was called")
for name in ("__init__", "connect", "request", "putrequest", "putheader", "endheaders", "send", "getresponse"):
    setattr(http.client.HTTPConnection, name, patched)
from compilewatch.export.transport import HttpTransport
answer = HttpTransport(sys.argv[1], "k").send(b"{}")
print(json.dumps([answer.ack is not None, seen, is_instrumentation_enabled(), is_http_instrumentation_enabled()]))
"""


def test_tracing_is_suppressed_and_patched_methods_are_not_called() -> None:
    with wire_server(answering(OURS)) as server:
        words = [sys.executable, "-c", TRACED, f"http://127.0.0.1:{server.port}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [True, [[False, False]], True, True]


def test_a_foreign_answer_does_not_leak_its_content() -> None:
    with wire_server(
        answering(b'HTTP/1.1 200 OK\r\n\r\n{"cw": true, "acked": [[1, 1]], "next_seq": 2}')
    ) as server:
        assert HttpTransport(f"http://127.0.0.1:{server.port}", KEY).send(BODY) == Answer(
            200, problem="HTTP 200, but not from a compilewatch dashboard"
        )
