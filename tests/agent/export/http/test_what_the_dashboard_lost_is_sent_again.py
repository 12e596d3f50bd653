"""A dashboard that was restored from a backup reports which windows it holds; windows that were
acknowledged in the last ten minutes and are missing are sent again."""

from __future__ import annotations

import pytest
from compilewatch.export import recently_acked as tail_module
from compilewatch.export.outbox import Entry, Outbox
from compilewatch.export.recently_acked import MAX_RESENDS, RecentlyAcked
from compilewatch.export.sender import Sender
from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack
from compilewatch.wire.messages import Identity, Report, SeqRange

from tests.agent.export.spool.collector import Collector

IDENTITY = Identity("x" * 26, 0.0, "m", "1")


class Sending:
    """An instance that closes and sends a window every ten seconds."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.seq = 0
        self.dashboard = Collector()
        self.outbox = Outbox()
        self.sender = Sender(
            self.dashboard, self.outbox, lambda: self.now, tail=RecentlyAcked(lambda: self.now)
        )

    def window(self, held: list[SeqRange] | None = None, next_seq: int | None = None) -> list[int]:
        """Closes the next window; returns the numbers that were sent."""
        self.seq += 1
        self.now += 10.0
        self.outbox.add(Report((self.seq, self.seq), (0.0, 1.0)))
        return self.send(held, next_seq)

    def send(self, held: list[SeqRange] | None = None, next_seq: int | None = None) -> list[int]:
        """One request, with an answer that the dashboard holds these ranges."""
        sent = [entry.seq for entry in self.outbox.next_batch()]
        if sent:
            ack = Ack(sent, next_seq or sent[-1][1] + 1, held=held)
            self.dashboard.answers = [Answer(200, ack=ack)]
            assert self.sender.attempt(IDENTITY)
        return [first for first, _ in sent]


@pytest.mark.parametrize("known", ["held", "next_seq"])
def test_missing_windows_are_sent_again_once(known: str) -> None:
    one = Sending()
    for _ in range(20):
        assert len(one.window()) == 1
    # The dashboard was restored from its state at window 15. Once the new window is stored, the
    # next number alone does not show the gap.
    assert one.window(
        **({"held": [(1, 15), (21, 21)]} if known == "held" else {"next_seq": 16})
    ) == [21]
    assert one.send(held=[(1, 21)]) == (
        [16, 17, 18, 19, 20] if known == "held" else [16, 17, 18, 19, 20, 21]
    )
    assert one.send() == []
    assert one.window() == [22]


def test_a_dashboard_that_forgot_the_instance_gets_the_last_ten_minutes() -> None:
    one = Sending()
    for _ in range(100):
        one.window()
    one.window(held=[(101, 101)])
    assert one.send(held=[(41, 72), (101, 101)]) == list(range(41, 73))
    assert one.send(held=[(41, 101)]) == list(range(73, 101))
    assert one.send() == []


def test_the_windows_kept_for_a_resend_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "MAX_BYTES", 1000)
    now = 0.0
    tail = RecentlyAcked(lambda: now)
    tail.add([Entry((seq, seq), 0.0, 1.0, b"x" * 100) for seq in range(1, 101)])
    assert [entry.seq[0] for entry in tail.pop_lost([])] == list(range(91, 101))
    assert tail.pop_lost([]) == []


def test_resends_to_a_server_that_never_stores_are_limited() -> None:
    one = Sending()
    one.window(held=[])
    again = 0
    while one.send(held=[]):
        again += 1
    assert again == MAX_RESENDS


def test_a_number_that_will_never_arrive_causes_no_resend() -> None:
    one = Sending()
    for _ in range(3):
        one.window()
    one.seq += 1  # the fourth window was refused permanently
    for _ in range(50):
        assert one.window(held=[(1, 3), (5, one.seq + 1)]) == [one.seq]
        assert one.send() == []
