"""After a failure the agent waits with equal jitter, 1 s to 60 s; a wait that the server requests
is honoured within bounds."""

from __future__ import annotations

import pytest
from compilewatch.export.outbox import Outbox
from compilewatch.export.sender import Sender
from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack
from compilewatch.wire.messages import Identity, Report

IDENTITY = Identity("x" * 26, 0.0, "m", "1")


class Scripted:
    """A fake transport with scripted answers."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def send(self, body: bytes) -> Answer:
        return self.answer


def sender(answer: Answer, chance: float) -> Sender:
    outbox = Outbox()
    outbox.add(Report((1, 1), (0.0, 1.0)))
    return Sender(Scripted(answer), outbox, clock=lambda: 1000.0, chance=lambda: chance)


@pytest.mark.parametrize(
    ("chance", "waits"), [(0.0, [1, 2, 4, 8, 16, 30, 30, 30]), (1.0, [2, 4, 8, 16, 32, 60, 60, 60])]
)
def test_the_wait_doubles_up_to_a_minute_with_half_of_it_random(
    chance: float, waits: list[float]
) -> None:
    one = sender(Answer(500), chance)
    found = []
    for _ in waits:
        assert not one.attempt(IDENTITY)
        found.append(one.next_attempt - 1000.0)
    assert found == waits


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("0", 1, 1.25),
        ("7", 7, 8.75),
        ("1000000000", 300, 375),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1, 1.25),
        ("9" * 20, 300, 375),
    ],
)
def test_a_requested_wait_is_honoured_within_bounds(asked: str, least: float, most: float) -> None:
    for chance, wait in ((0.0, least), (1.0, most)):
        one = sender(Answer(429, retry_after=asked), chance)
        one.attempt(IDENTITY)
        assert one.next_attempt - 1000.0 == wait


@pytest.mark.parametrize("asked", ["-1", "soon", "1e9", "١٢"])
def test_an_unreadable_wait_is_ignored(asked: str) -> None:
    one = sender(Answer(503, retry_after=asked), 0.0)
    one.attempt(IDENTITY)
    assert one.next_attempt - 1000.0 == 1.0


def test_an_acknowledgement_ends_the_waiting() -> None:
    one = sender(Answer(500), 1.0)
    one.attempt(IDENTITY)
    assert not one.is_due()
    one._transport = Scripted(Answer(200, ack=Ack([(1, 1)], 2)))
    assert one.attempt(IDENTITY)
    assert (one.failures, len(one.outbox), one.next_attempt) == (0, 0, 1000.0)
