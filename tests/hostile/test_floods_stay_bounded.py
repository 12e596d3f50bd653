"""Rows 14 and 121 to 125: slow senders, too many distinct names, and the same report repeatedly."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from compilewatch.wire.codec import deflate

from tests.dashboard.requests import instance_id
from tests.flow.stack import wait_for
from tests.hostile.target import Answer, Target

pytestmark = pytest.mark.timeout(600)
REPEATS = 1_000


def sent(target: Target, bodies: list[bytes]) -> list[Answer]:
    """The responses to compressed bodies, sent by eight threads. Like agents, the threads retry
    while the server is busy."""

    def send(body: bytes) -> Answer:
        answer = target.gzip(body)
        deadline = time.monotonic() + 120
        while answer.status == 503 and time.monotonic() < deadline:
            assert (answer.code, answer.headers["retry-after"].isdecimal()) == ("busy", True)
            time.sleep(0.2)
            answer = target.gzip(body)
        return answer

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(send, bodies))


def bodies(
    target: Target, count: int, change: Callable[[dict[str, object], int], object]
) -> list[bytes]:
    """This number of requests, each changed by its index."""
    made = []
    for number in range(count):
        data = target.data()
        change(data, number)
        made.append(deflate(json.dumps(data).encode()))
    return made


def test_the_same_report_a_thousand_times_at_once_is_one(target: Target) -> None:
    target.number = 3_000_001
    answers = sent(target, bodies(target, 1, lambda data, number: None) * REPEATS)
    assert {answer.status for answer in answers} == {200}
    assert all(answer.data["acked"] == [[1, 1]] for answer in answers)
    wait_for("it is folded", target.stack.folded, seconds=60)
    calls = (
        "SELECT sum(calls) FROM region_minute JOIN instance ON instance.id = "
        "region_minute.instance_id"
        f" WHERE instance.instance_id = '{target.instance}'"
    )
    assert target.ranges() == [[1, 1]]
    assert target.stack.rows(calls) == [(100,)]


def test_many_versions_instances_and_reasons_lose_no_count(target: Target) -> None:
    def change(data: dict[str, object], number: int) -> None:
        data["instance"] |= {
            "id": instance_id(4_000_000 + number),
            "model": "flood",
            "version": f"v{number}",
        }  # type: ignore[operator]
        data["reports"][0]["findings"] = [
            {
                "kind": "guard",
                "text": f"{chr(97 + number % 26)}{letters(number)} {letters(n)}",
                "count": 1,
            }
            for n in range(100)
        ]  # type: ignore[index]

    answers = sent(target, bodies(target, 600, change))
    assert {answer.status for answer in answers} == {200}
    wait_for("everything is folded", target.stack.folded, seconds=300)
    assert target.stack.rows("SELECT error FROM ingest_poison") == []
    total = (
        "SELECT sum(calls) FROM version_hour JOIN series ON series.id = series_id JOIN "
        "model_version ON model_version.id = version_id"
        " JOIN model ON model.id = model_id WHERE model.name = 'flood'"
    )
    assert target.stack.rows(total) == [(600 * 100,)]


def letters(number: int) -> str:
    """A number in letters, so that no normalisation of digits merges two of them."""
    return "".join(chr(97 + int(digit)) for digit in str(number))


def test_a_project_over_its_rate_receives_a_retry_time(target: Target) -> None:
    target.number = 5_000_000
    slow = Target(target.stack, target.others["slow"], number=target.number)
    answers = sent(
        slow,
        bodies(slow, 200, lambda data, number: data["reports"][0].update(seq=[number + 1] * 2)),
    )  # type: ignore[index]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and len(refused) < 200
    assert all(
        answer.code == "too_many" and 1 <= int(answer.headers["retry-after"]) <= 60
        for answer in refused
    )
    assert target.post(target.data()).status == 200


def test_slow_senders_do_not_block_others(target: Target) -> None:
    """Forty connections that send a byte per second, and others with half a body: good reports are
    answered in between."""
    target.number = 6_000_000
    head = target.head(100)
    stop = threading.Event()
    held = [
        socket.create_connection(("127.0.0.1", target.stack.port), timeout=60) for _ in range(40)
    ]

    def drip() -> None:
        for place in range(len(head)):
            for connection in held:
                try:
                    connection.sendall(head[place : place + 1])
                except OSError:
                    continue
            if stop.wait(1.0):
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        time.sleep(3)
        for seq in range(1, 11):
            data = target.data()
            data["reports"][0]["seq"] = [seq, seq]
            assert target.post(data).status == 200
    finally:
        stop.set()
        dripping.join()
        for connection in held:
            connection.close()
