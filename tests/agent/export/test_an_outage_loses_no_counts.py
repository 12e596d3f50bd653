"""For every answer of the dashboard, and without any answer: the job continues, counts are kept,
and all counts arrive later."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch import agent
from compilewatch.export import sender

from tests.agent.conftest import KEY, the_instance
from tests.agent.server import Dashboard, Reply

Start = Callable[..., None]


def nothing() -> None:
    """The job's function."""


JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter waits than those of a real agent; another test covers the rule of the waits."""
    monkeypatch.setattr(sender, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(sender, "LONGEST_WAIT", 0.1)
    monkeypatch.setattr(sender, "REFUSED_WAIT", 0.1)
    monkeypatch.setattr(sender, "LEAST_RETRY_AFTER", 0.05)


def error(status: int, code: str, **headers: str) -> Reply:
    return (
        status,
        {**JSON, **headers},
        json.dumps({"cw": 1, "code": code, "detail": "because"}).encode(),
    )


ANSWERS: dict[str, Reply] = {
    "HTML from a proxy": (200, {"Content-Type": "text/html"}, b"<html>All is well</html>"),
    "nothing": (200, {}, b""),
    "JSON of another program": (200, JSON, b'{"status": "ok"}'),
    "no JSON object": (200, JSON, b"[1]"),
    "the marker alone": (200, JSON, b'{"cw": 1}'),
    "ranges that were never sent": (
        200,
        JSON,
        b'{"cw": 1, "acked": [[900, 901]], "next_seq": 902}',
    ),
    "more than 64 KiB": (
        200,
        JSON,
        b'{"cw": 1, "acked": [[1, 99]], "next_seq": 2, "x": "' + b"x" * 70_000 + b'"}',
    ),
    "less than it promised": (
        200,
        {**JSON, "Content-Length": "500"},
        b'{"cw": 1, "acked": [[1, 99]], "next_seq": 2}',
    ),
    "a redirect": (302, {"Location": "/elsewhere"}, b""),
    "404 of a proxy": (404, {}, b"no such page"),
    "bad key": error(401, "bad_key"),
    "wrong version": error(426, "wrong_version"),
    "too many": error(429, "too_many", **{"Retry-After": "0"}),
    "busy": error(503, "busy", **{"Retry-After": "junk"}),
    "a crash": (500, {}, b"Traceback"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_acknowledges_nothing_is_retried_with_the_same_bytes(
    dashboard: Dashboard, start: Start, answer: Reply
) -> None:
    dashboard.scripts = [lambda data: answer] * 2
    start()
    call = compilewatch.watch(nothing, name="forward")
    for _ in range(50):
        call()
    dashboard.wait(lambda it: it.calls("forward") == 50)
    first, second, third = (windows(body) for body in dashboard.bodies[:3])
    assert first == second == third[: len(first)]
    assert not any("elsewhere" in path for path in dashboard.paths)
    assert sum(the_instance().sender.refusals.values()) == 2


def windows(body: bytes) -> bytes:
    """The reports of a request as they were sent, without the time of sending, which may differ."""
    return body[body.index(b'"reports":[') :].removesuffix(b"]}")


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def later(free_port: int) -> Iterator[Callable[[], Dashboard]]:
    started: list[Dashboard] = []

    def open_it() -> Dashboard:
        started.append(Dashboard(free_port))
        return started[0]

    yield open_it
    agent.shutdown()
    for dashboard in started:
        dashboard.stop()


def test_counts_of_an_outage_arrive_when_the_dashboard_is_back(
    free_port: int, later: Callable[[], Dashboard]
) -> None:
    agent.init(model="m", endpoint=f"http://127.0.0.1:{free_port}", api_key=KEY, interval=0.05)
    call = compilewatch.watch(nothing, name="forward")
    instance = the_instance()
    while instance.sender.failures < 3 or len(instance.outbox) < 5:
        call()
        call_count[0] += 1
    dashboard = later()
    dashboard.wait(lambda it: it.calls("forward") == call_count[0])


call_count = [0]


def test_a_connection_that_breaks_after_the_request_counts_nothing_twice(
    dashboard: Dashboard, start: Start
) -> None:
    def stored_but_unanswered(data: dict[str, Any]) -> Reply:
        dashboard._acknowledge(data)
        return 200, {"Content-Length": "9999"}, b""

    dashboard.scripts = [stored_but_unanswered] * 3
    start()
    call = compilewatch.watch(nothing, name="forward")
    for _ in range(20):
        call()
    dashboard.wait(lambda it: len(it.requests) > 6 and it.calls("forward") >= 20)
    agent.shutdown()
    assert dashboard.calls("forward") == 20


def test_a_refused_window_is_dropped_and_counted(dashboard: Dashboard, start: Start) -> None:
    def refuse_first(data: dict[str, Any]) -> Reply:
        first, *rest = [report["seq"] for report in data["reports"]]
        body = {
            "cw": 1,
            "acked": rest,
            "next_seq": 9,
            "rejected": [{"seq": first, "code": "too_old"}],
        }
        return 200, JSON, json.dumps(body).encode()

    dashboard.scripts = [refuse_first]
    start()
    dashboard.wait(lambda it: len(it.acked) >= 2)
    instance = the_instance()
    assert instance.outbox.rejected_windows == 1
    assert instance.sender.refusals == {"rejected: too_old": 1}
    dashboard.wait(
        lambda it: it.requests[-1]["reports"][-1].get("losses", {}).get("rejected_windows") == 1
    )


def test_one_bad_window_in_a_batch_is_found_and_the_others_arrive(
    free_port: int, later: Callable[[], Dashboard]
) -> None:
    agent.init(model="m", endpoint=f"http://127.0.0.1:{free_port}", api_key=KEY, interval=0.05)
    instance = the_instance()
    while len(instance.outbox) < 6:
        pass
    dashboard = later()

    def bad_three(data: dict[str, Any]) -> Reply | None:
        return (
            error(400, "bad_request")
            if any(report["seq"] == [3, 3] for report in data["reports"])
            else None
        )

    dashboard.scripts = [bad_three] * 100
    dashboard.wait(lambda it: len(it.acked) >= 6)
    assert (3, 3) not in {(first, last) for _, first, last in dashboard.acked}
    assert instance.outbox.rejected_windows == 1
