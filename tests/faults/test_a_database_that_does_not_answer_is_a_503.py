"""A locked, full, halted or stopped PostgreSQL: every request receives a 503 in time, and the
service recovers afterwards."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from compilewatch.wire.codec import dumps

from tests.dashboard.requests import request_make
from tests.faults.cluster import Cluster
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import Stack, wait_for

SENDERS = 40
IN_TIME = 30.0
"""Seconds, ten times the promised limit: other tests run at the same time. The full form records
the actual durations."""


@dataclass
class Answer:
    """A response of the web process, and its duration in seconds."""

    status: int
    headers: http.client.HTTPMessage
    body: str
    seconds: float


class Web:
    """The web process of a full stack on its own PostgreSQL server; no worker folds."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(
            settings=("max_connections=5", "superuser_reserved_connections=0", "fsync=off")
        )
        self.cluster.start()
        self.stack = Stack(
            database="postgresql",
            folder=folder,
            outbound="127.0.0.1:9",
            server=self.cluster.address,
        )
        self.stack.manage("migrate", "--verbosity=0")
        printed = self.stack.manage("setup_project", "--name", "Flow", "--user", "ada")
        self.stack.key = next(word for word in printed.split() if word.startswith("cw_ing_"))
        self.stack.start_role("web")
        wait_for(
            "the web process responds", lambda: self.stack.status("/healthz") == 200, seconds=120
        )
        self._sent = 0

    def get(self, path: str) -> Answer:
        """Requests a page."""
        return self._ask("GET", path)

    def report(self, instance: int) -> Answer:
        """Sends a valid report of an instance."""
        body = dumps(request_make(instance=instance, end=time.time()))
        return self._ask("POST", "/api/v1/reports", body)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.stack.port, timeout=120)
        headers = (
            {"Authorization": f"Bearer {self.stack.key}", "Content-Type": "application/json"}
            if body
            else {}
        )
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        return Answer(response.status, response.headers, text, time.monotonic() - begun)

    def well(self) -> bool:
        """True if the web process accepts reports and opens pages."""
        self._sent += 1
        return (
            self.report(900 + self._sent).status == 200
            and self.get("/accounts/login/").status == self.get("/readyz").status == 200
        )

    def close(self) -> None:
        """Ends the web process."""
        for role in list(self.stack.processes):
            self.stack.kill(role)
        self.cluster.close()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One for all tests of this file, in a healthy state."""
    running = Web(tmp_path_factory.mktemp("web"))
    try:
        yield running
    except BaseException:
        print(running.stack.logs())
        raise
    finally:
        running.close()


def is_busy(answer: Answer) -> bool:
    """503 in the format of the endpoint, with the time to retry."""
    return (
        answer.status == 503
        and json.loads(answer.body)["code"] == "busy"
        and int(answer.headers["Retry-After"]) >= 1
    )


def is_away_page(answer: Answer) -> bool:
    """503 with the page that needs no database."""
    return (
        answer.status == 503
        and "The database is unavailable" in answer.body
        and int(answer.headers["Retry-After"]) >= 1
    )


def test_a_locked_inbox(web: Web, add_result: AddResult) -> None:
    wait_for("the web process is healthy", web.well, seconds=60)
    hold = sized(5, 30)
    with (
        web.cluster.connect(web.stack.name) as other,
        ThreadPoolExecutor(SENDERS) as pool,
        other.transaction(),
    ):
        other.execute("LOCK TABLE ingest_inbox")
        begun, answers = time.monotonic(), []
        while time.monotonic() - begun < hold:
            answers += list(pool.map(web.report, range(SENDERS)))
        page = web.get("/accounts/login/")  # its threads are free
        ready = web.get("/readyz")
    assert all(is_busy(answer) for answer in answers)
    assert page.status == 200
    assert ready.status == 200 and json.loads(ready.body)["checks"]["inbox"]["value"] is None
    slowest = max(answer.seconds for answer in [*answers, page, ready])
    assert slowest < IN_TIME
    wait_for("the web process is healthy again", web.well, seconds=60)
    add_result(
        "30",
        requests=len(answers),
        held_s=hold,
        slowest_s=round(slowest, 2),
        page_s=round(page.seconds, 2),
    )


CLIENTS = "FROM pg_stat_activity WHERE backend_type = 'client backend'"


@contextmanager
def every_connection_taken(web: Web) -> Iterator[None]:
    """Others hold all five connections of the server."""
    with ExitStack() as held:
        ours = [held.enter_context(web.cluster.connect())]
        while len(ours) < 5:
            ours[0].execute(f"SELECT pg_terminate_backend(pid) {CLIENTS} AND datname <> 'postgres'")
            with suppress(psycopg.OperationalError):
                ours.append(held.enter_context(web.cluster.connect()))
        yield


def test_no_connection_is_left(web: Web, add_result: AddResult) -> None:
    wait_for("the web process is healthy", web.well, seconds=60)
    with every_connection_taken(web):
        refused, page, ready = web.report(1), web.get("/p/flow/"), web.get("/readyz")
        assert is_busy(refused) and ready.status == 503
        assert page.status in (
            302,
            503,
        )  # no session, so no database query
        assert web.get("/healthz").status == web.get("/static/ui/app.css").status == 200
    slowest = max(answer.seconds for answer in (refused, page, ready))
    assert slowest < IN_TIME
    wait_for("the web process is healthy again", web.well, seconds=60)
    add_result("31", slowest_s=round(slowest, 2))


def test_pages_open_while_reports_use_every_connection(web: Web, add_result: AddResult) -> None:
    wait_for("the web process is healthy", web.well, seconds=60)
    with ThreadPoolExecutor(SENDERS) as pool:
        reports = pool.map(web.report, [number % SENDERS for number in range(sized(400, 4000))])
        pages = [web.get("/accounts/login/?next=/p/flow/") for _ in range(20)]
        answers = list(reports)
    assert {answer.status for answer in answers} <= {200, 503}
    assert all(answer.status == 200 or is_busy(answer) for answer in answers)
    assert {page.status for page in pages} == {200}
    add_result(
        "31",
        taken=sum(answer.status == 200 for answer in answers),
        of=len(answers),
        page_slowest_s=max(page.seconds for page in pages),
    )


def test_a_halted_server(web: Web, add_result: AddResult) -> None:
    wait_for("the web process is healthy", web.well, seconds=60)
    web.cluster.halt()
    try:
        ready, refused = web.get("/readyz"), web.report(2)
        assert ready.status == 503 and not json.loads(ready.body)["checks"]["database"]["ok"]
        assert is_busy(refused)
        assert web.get("/healthz").status == 200
    finally:
        web.cluster.go_on()
    assert max(ready.seconds, refused.seconds) < IN_TIME
    wait_for("the web process is healthy again", web.well, seconds=60)
    add_result("30 halted", ready_s=round(ready.seconds, 2), report_s=round(refused.seconds, 2))


def test_a_stopped_server(web: Web, add_result: AddResult) -> None:
    wait_for("the web process is healthy", web.well, seconds=60)
    web.cluster.stop()
    ready, refused = web.get("/readyz"), web.report(3)
    assert ready.status == 503 and json.loads(ready.body)["checks"]["migrations"]["value"] is None
    assert is_busy(refused)
    begun = time.monotonic()
    web.cluster.start()
    wait_for("the web process is healthy again", web.well, seconds=60)
    add_result(
        "25 web alone",
        ready_s=round(ready.seconds, 2),
        report_s=round(refused.seconds, 2),
        back_after_s=round(time.monotonic() - begun, 2),
    )
