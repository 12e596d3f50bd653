"""A dashboard that listens only by IPv6: an agent reports to it, a person signs in, and the image's
health check succeeds."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.environment import DATABASE
from tests.flow.stack import REPOSITORY, Stack, free_port, wait_for

pytestmark = pytest.mark.timeout(900)


class SixStack(Stack):
    """Its web process listens on COMPILEWATCH_LISTEN."""

    def __init__(self, folder: Path, listen: str) -> None:
        super().__init__(database=DATABASE, folder=folder, outbound="127.0.0.1:9")
        self.address = f"http://[::1]:{self.port}"
        self.environment["COMPILEWATCH_LISTEN"] = listen
        if DATABASE == "postgresql":
            self.environment |= {
                "COMPILEWATCH_HOSTS": "[::1]",
                "COMPILEWATCH_BASE_URL": self.address,
            }

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        """One request by IPv6."""
        connection = http.client.HTTPConnection("::1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def status(self, path: str) -> int:
        try:
            return self.ask("GET", path).status
        except OSError:
            return 0

    def by_four(self) -> int:
        """The status of a report with a wrong key by IPv4; 0 without a listener."""
        headers = {"Host": f"[::1]:{self.port}", "Content-Type": "application/json"}
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request("POST", "/api/v1/reports", b"{}", headers)
            return connection.getresponse().status
        except OSError:
            return 0

    def sign_in(self) -> http.client.HTTPResponse:
        """Signs in like a browser, which sends the origin of the form."""
        form = self.ask("GET", "/accounts/login/")
        cookie, text = form.headers["Set-Cookie"].partition(";")[0], form.read().decode()
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', text)[1]  # type: ignore[index]
        fields = urlencode(
            {"csrfmiddlewaretoken": token, "login": "ada", "password": self.password}
        ).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask(
            "POST", "/accounts/login/", fields, Cookie=cookie, Origin=self.address, **kind
        )


@pytest.fixture(params=["::1", "::"])
def six(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SixStack]:
    """Running, on loopback or on every address."""
    running = SixStack(tmp_path, request.param)
    try:
        running.start(channel="http://127.0.0.1:9/none")
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


def test_a_job_and_a_person_reach_it(six: SixStack) -> None:
    agent = {"COMPILEWATCH_ENDPOINT": six.address, "COMPILEWATCH_API_KEY": six.key}
    job = [sys.executable, "-m", "tests.flow.small_job", "3"]
    subprocess.run(job, cwd=REPOSITORY, env=six.environment | agent, check=True, timeout=300)
    wait_for(
        "the reports of the job are folded",
        lambda: six.rows("SELECT 1 FROM version_minute"),
        seconds=120,
    )

    answer = six.sign_in()
    assert (answer.status, answer.headers["Location"]) == (302, "/")
    [(noted,)] = six.rows("SELECT DISTINCT ip FROM usersessions_usersession")
    assert str(noted) == "::1"

    alive = {
        "COMPILEWATCH_PORT": str(six.port),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(six.folder),
    }
    (six.folder / "compilewatch.role").write_text("web\n")
    asked = [REPOSITORY / "docker/entrypoint", "alive"]
    assert subprocess.run(asked, env=six.environment | alive, timeout=120).returncode == 0

    # On `::`, IPv4 loopback clients also appear as loopback, under an IPv4-mapped address. On `::1`
    # there are no such clients.
    assert six.by_four() == (0 if six.environment["COMPILEWATCH_LISTEN"] == "::1" else 401)


def test_a_key_over_plain_http_is_refused_unless_only_this_machine_has_access(
    six: SixStack,
) -> None:
    passed_on = {
        "Authorization": f"Bearer {six.key}",
        "Content-Type": "application/json",
        "X-Forwarded-For": "203.0.113.7",
    }
    alone = six.environment["COMPILEWATCH_LISTEN"] == "::1" and six.database == "sqlite"
    assert six.ask("POST", "/api/v1/reports", b"{}", **passed_on).status == (400 if alone else 403)


def serve(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    environment = kept | {"COMPILEWATCH_DATA": str(folder), "PYTHONUNBUFFERED": "1"} | settings
    command = [sys.executable, "manage.py", "serve", *words]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )


def test_an_absent_or_used_address_is_a_sentence(tmp_path: Path) -> None:
    port = free_port()
    absent = serve(tmp_path, "--host", "2001:db8::1", COMPILEWATCH_PORT=str(port))
    assert absent.returncode == 1 and "Traceback" not in absent.stderr
    assert f"cannot listen on 2001:db8::1 port {port}" in absent.stderr

    with socket.create_server(("::1", port), family=socket.AF_INET6):
        taken = serve(tmp_path, COMPILEWATCH_LISTEN="::1", COMPILEWATCH_PORT=str(port))
    assert taken.returncode == 1 and f"port {port} is in use by another process" in taken.stderr


def test_remote_access_requires_a_password(tmp_path: Path) -> None:
    refused = serve(tmp_path, "--host", "::", COMPILEWATCH_PORT=str(free_port()))
    assert refused.returncode == 1 and "no user has a password yet" in refused.stderr
