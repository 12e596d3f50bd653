"""The libraries of Sentry and OpenTelemetry send telemetry of a process to a local listener,
without secrets."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dashboard.environment.settings import ROOT

SECRET = "S3cretValue0123456789"
PROGRAM = """
import logging, django
django.setup()
from django.test import Client
secret = "{secret}"
client = Client(raise_request_exception=False, headers={{"host": "localhost"}})
assert client.get("/healthz", headers={{"host": "10.0.0.7:8000"}}).status_code == 200  # a probe
client.get("/healthz?state={secret}", headers={{"authorization": "Bearer {secret}", "cookie": "cw_session={secret}"}})
client.get("/invitations/{secret}/?code={secret}")  # no migration has run: the request fails with an error page
try:
    raise ValueError("Authorization: Bearer {secret}")
except ValueError:
    logging.getLogger("dashboard.fleet").exception("folding failed for {secret_key}")
"""
KEY = f"cw_api_AbCd1234_{SECRET * 2}"


class Listener(ThreadingHTTPServer):
    """Stores POST bodies by path."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), Taker)
        Thread(target=self.serve_forever, daemon=True).start()

    def of(self, path: str) -> bytes:
        return b"\n".join(body for where, body in self.taken if where.startswith(path))


class Taker(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append(
            (
                self.path,
                gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body,
            )
        )
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """The requests that one process with both sets of variables sent before it ended."""
    heard = Listener()
    address = f"127.0.0.1:{heard.server_port}"
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COMPILEWATCH_")
        },
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "COMPILEWATCH_DATA": str(tmp_path_factory.mktemp("data")),
        "SENTRY_DSN": f"http://public@{address}/1",
        "SENTRY_RELEASE": "release-of-the-operator",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}",
        "OTEL_SERVICE_NAME": "name-of-the-operator",
    }
    program = PROGRAM.format(secret=SECRET, secret_key=KEY)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stderr and "not installed" not in done.stderr
    yield heard
    heard.shutdown()


def test_sentry_receives_errors_through_the_operators_own_variables(listener: Listener) -> None:
    sent = listener.of("/api/1/envelope").decode()
    assert (
        "folding failed for" in sent and "ValueError" in sent and "release-of-the-operator" in sent
    )


def test_opentelemetry_receives_requests_through_the_operators_own_variables(
    listener: Listener,
) -> None:
    sent = listener.of("/v1/traces")
    assert b"name-of-the-operator" in sent and b"healthz" in sent


def test_telemetry_contains_no_secret(listener: Listener) -> None:
    everything = listener.of("/")
    assert listener.taken and SECRET.encode() not in everything
    assert b"/invitations/***" in everything


def test_only_tests_require_the_packages() -> None:
    """A dashboard runs without either package."""
    for file in ("requirements.txt", "docker/requirements.lock"):
        listed = Path(ROOT, file).read_text()
        assert "sentry" not in listed and "opentelemetry" not in listed
