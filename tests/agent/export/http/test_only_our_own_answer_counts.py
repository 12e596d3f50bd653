"""For every combination of status and body: only our own 200 that names ranges acknowledges, only a
marked 4xx is final."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from compilewatch.export.transport import TEMPORARY_STATUSES, Answer, HttpTransport

from tests.dashboard.common.wire_server import request_read, wire_server

BODY = b'{"v":1,"reports":[]}'
ACK = json.dumps({"cw": 1, "acked": [[1, 3]], "next_seq": 4}).encode()
REFUSAL = json.dumps({"cw": 1, "code": "bad_key", "detail": "unknown"}).encode()
BODIES = {
    "HTML": b"<html><body>All is well</body></html>",
    "JSON of another program": b'{"acked": [[1, 3]], "next_seq": 4}',
    "nothing": b"",
    "our refusal": REFUSAL,
    "our acknowledgement": ACK,
}
# 100, 102 and 103 are not final answers: the answer comes after them.
STATUSES = [101, *range(200, 600)]


class Scripted:
    """Answers each connection with the next scripted response."""

    def __init__(self) -> None:
        self.reply = b""

    def __call__(self, connection: socket.socket) -> None:
        request_read(connection)
        connection.sendall(self.reply)


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[tuple[int, str], Answer]]:
    """The agent's reading of each status with each body."""
    script = Scripted()
    with wire_server(script) as server:
        transport = HttpTransport(f"http://127.0.0.1:{server.port}", "k")
        found = {}
        for status in STATUSES:
            for name, body in BODIES.items():
                script.reply = b"HTTP/1.1 %d Some words\r\nContent-Length: %d\r\n\r\n%b" % (
                    status,
                    len(body),
                    body,
                )
                found[status, name] = transport.send(BODY)
        yield found


def test_only_our_200_acknowledges(answers: dict[tuple[int, str], Answer]) -> None:
    assert {place for place, answer in answers.items() if answer.ack is not None} == {
        (200, "our acknowledgement")
    }


def test_only_a_4xx_in_our_words_is_final(answers: dict[tuple[int, str], Answer]) -> None:
    ours = ("our refusal", "our acknowledgement")
    expected = {
        (status, name)
        for status in range(400, 500)
        if status not in TEMPORARY_STATUSES
        for name in ours
    }
    assert {place for place, answer in answers.items() if answer.final} == expected


def test_every_other_answer_names_its_problem(answers: dict[tuple[int, str], Answer]) -> None:
    silent = {
        place
        for place, answer in answers.items()
        if answer.ack is None and f"HTTP {place[0]}" not in answer.problem
    }
    # For a 200 in our words that cannot be read, the problem names the wrong field instead.
    assert silent == {(200, "our refusal")}
    assert answers[200, "our refusal"].problem.startswith("an answer that cannot be read: acked")


@pytest.mark.parametrize(
    "ack",
    [
        {"cw": 1, "acked": [[1]], "next_seq": 2},
        {"cw": 1, "acked": {"1": 3}, "next_seq": 2},
        {"cw": 1, "acked": [["1", "3"]], "next_seq": 2},
        {"cw": 1, "acked": None, "next_seq": 2},
        {"cw": 2, "acked": [[1, 3]], "next_seq": 4},
        {"cw": 1.0, "acked": [[1, 3]], "next_seq": 4},
        {"cw": True, "acked": [[1, 3]], "next_seq": 4},
        {"cw": 1, "acked": [[1, 3]], "next_seq": 4, "held": "all"},
    ],
)
def test_a_malformed_acknowledgement_acknowledges_nothing(ack: dict[str, object]) -> None:
    script = Scripted()
    script.reply = b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(ack).encode()
    with wire_server(script) as server:
        answer = HttpTransport(f"http://127.0.0.1:{server.port}", "k").send(BODY)
    assert (answer.ack, answer.final) == (None, False)
    assert answer.problem
