"""Behind a configured proxy, the audit log contains the client's address: in one process as with a
separate web process, and regardless of spoofed proxy headers."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.environment import DATABASE
from tests.flow.stack import REPOSITORY, Stack, free_port, wait_for
from tests.machine import need

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(
        database=DATABASE, folder=tmp_path_factory.mktemp("stack"), outbound="127.0.0.1:9"
    )
    running.environment["COMPILEWATCH_TRUSTED_PROXIES"] = "1"
    try:
        running.start(channel="http://127.0.0.1:9/none")
        yield running
    finally:
        running.close()


@contextmanager
def caddy(folder: Path, web: int) -> Iterator[int]:
    """The proxy of docker/compose.yml, in front of this port; yields its own port."""
    need("Caddy")
    port = free_port()
    own = {
        "COMPILEWATCH_ADDRESS": f"http://127.0.0.1:{port}",
        "COMPILEWATCH_WEB": f"127.0.0.1:{web}",
        "HOME": str(folder),
    }
    command = ["caddy", "run", "--config", str(caddyfile(folder)), "--adapter", "caddyfile"]
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
    try:
        wait_for("the proxy answers", lambda: answers(port), seconds=60)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def caddyfile(folder: Path) -> Path:
    """The shipped file; Debian's Caddy 2.6 has two older directives instead of the image's
    `request_buffers`."""
    text, file = (REPOSITORY / "docker/Caddyfile").read_text(), folder / "Caddyfile"
    if subprocess.check_output(["caddy", "version"], text=True).lstrip("v").startswith("2.6."):
        assert text.count("request_buffers 1MiB") == 1
        text = text.replace("request_buffers 1MiB", "buffer_requests\n\t\tmax_buffer_size 1MiB")
    file.write_text(text)
    return file


def answers(port: int) -> bool:
    try:
        return bool(
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60).status == 200
        )
    except OSError:
        return False


def noted(stack: Stack, port: int, headers: dict[str, str]) -> str:
    """The logged address of a client that sends a key over plain http; each time another key,
    because a key is logged once a minute."""
    [(before,)] = stack.rows("SELECT coalesce(max(id), 0) FROM audit_entry")
    [key] = re.findall(
        r"cw_api_\w+", stack.manage("key_make", "--project", "flow", "--name", "open")
    )
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=60
    )  # sends header names unchanged, in any case
    connection.request(
        "GET",
        f"/metrics?key={key}",
        headers={"User-Agent": "an address of a stranger", "Accept": "*/*", **headers},
    )
    assert connection.getresponse().status == 400
    [(address,)] = stack.rows(
        f"SELECT address FROM audit_entry WHERE action = 'key.exposed' AND id > {before}"
    )
    return str(address)


def test_the_entry_of_the_trusted_proxy_is_used(stack: Stack) -> None:
    assert (
        noted(stack, stack.port, {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}) == "203.0.113.7"
    )


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X_Forwarded_For", "X_Forwarded-For"])
def test_the_proxy_of_the_compose_file_drops_spoofed_headers(
    header: str, stack: Stack, tmp_path: Path
) -> None:
    with caddy(tmp_path, stack.port) as port:
        assert noted(stack, port, {header: "198.51.100.1"}) == "127.0.0.1"
