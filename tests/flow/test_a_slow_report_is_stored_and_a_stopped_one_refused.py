"""Over a bad link, a report of 64 kB that takes 20 s is stored; a stalled report is refused with
408 after the grace, in both server modes."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from compilewatch.wire.codec import dumps

from tests.dashboard.requests import request_make
from tests.flow.slow_clients import REPORTS, head
from tests.flow.stack import Stack, wait_for
from tests.hostile.target import Answer, answer_read

pytestmark = pytest.mark.timeout(600)
SIZE, SECONDS = 64_000, 20


@pytest.fixture(params=["sqlite", "postgresql"])
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Both server modes, regardless of the database under test."""
    running = Stack(
        database=request.param, folder=tmp_path_factory.mktemp("stack"), outbound="127.0.0.1:9"
    )
    try:
        running.start(channel="http://127.0.0.1:9/none")
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


def sent(stack: Stack, parts: list[bytes], pause: float) -> tuple[Answer, float]:
    """The response to a report that is sent in these parts, and the seconds until the response."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
        opening = head(
            REPORTS,
            Authorization=f"Bearer {stack.key}",
            Content_Type="application/json",
            Content_Length=str(SIZE),
        )
        connection.sendall(opening.replace(b"Host:", b"Connection: close\r\nHost:"))
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        return answer_read(connection), time.monotonic() - begun


def test_reports_are_accepted_by_their_rate(stack: Stack) -> None:
    body = dumps(request_make(end=time.time(), instance=9_100_000)).ljust(SIZE)
    pieces = [body[begin : begin + SIZE // SECONDS] for begin in range(0, SIZE, SIZE // SECONDS)]
    with ThreadPoolExecutor(2) as pool:
        slow, stopped = (
            pool.submit(sent, stack, pieces, 1.0),
            pool.submit(sent, stack, [body[:10]], 0.0),
        )
    answer, took = slow.result()
    assert (answer.status, took > SECONDS - 1) == (200, True), answer
    answer, took = stopped.result()
    assert (answer.status, answer.code, answer.headers["connection"]) == (408, "too_slow", "close")
    assert json.loads(answer.body)["detail"] and 14 < took < 19
    count = "SELECT sum(count) FROM ingest_refusal WHERE code = 'too_slow'"
    wait_for("the refusal is counted", lambda: stack.rows(count) == [(1,)], seconds=30)
