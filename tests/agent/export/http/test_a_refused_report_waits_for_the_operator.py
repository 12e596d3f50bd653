"""A refusal in our own words: a refused key is logged once and the windows are kept; a refused
window is dropped alone."""

from __future__ import annotations

from compilewatch.export.outbox import Outbox
from compilewatch.export.sender import Sender
from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack
from compilewatch.wire.messages import Identity, Report

from tests.agent.export.spool.collector import Collector

IDENTITY = Identity("x" * 26, 0.0, "m", "1")


class Waiting:
    """A sender with some pending windows, its clock and its log lines."""

    def __init__(self, windows: int) -> None:
        self.now = 1000.0
        self.logged: list[str] = []
        self.dashboard = Collector()
        self.outbox = Outbox()
        for seq in range(1, windows + 1):
            self.outbox.add(Report((seq, seq), (0.0, 1.0)))
        self.sender = Sender(
            self.dashboard, self.outbox, lambda: self.now, lambda: 0.5, say=self.logged.append
        )

    def attempt(self, answer: Answer | None = None) -> bool:
        """One attempt with this answer; without an answer the dashboard accepts everything."""
        self.dashboard.answers = [answer] if answer is not None else []
        return self.sender.attempt(IDENTITY)

    @property
    def sent(self) -> list[int]:
        """The window numbers in the last request."""
        reports = self.dashboard.requests[-1]["reports"]
        return [report["seq"][0] for report in reports]  # type: ignore[attr-defined]


def refused(status: int, code: str) -> Answer:
    return Answer(status, final=True, code=code, problem=f"HTTP {status} {code}: \x1b[31mbecause\n")


def test_a_refused_key_is_logged_once_and_retried_every_few_minutes() -> None:
    one = Waiting(3)
    for _ in range(10):
        assert not one.attempt(refused(401, "bad_key"))
        assert one.sender.next_attempt - one.now == 225.0
        assert one.sender.is_refused
    assert one.sent == [1, 2, 3]
    assert one.logged == [
        "the dashboard refuses the reports of this process (HTTP 401 bad_key:  [31mbecause "
        "); they are kept and retried every few minutes"
    ]
    one.attempt(refused(426, "wrong_version"))
    assert len(one.logged) == 2
    assert one.attempt()
    assert (len(one.outbox), one.sender.is_refused, one.outbox.rejected_windows) == (0, False, 0)


def test_an_answer_of_another_program_logs_nothing() -> None:
    one = Waiting(1)
    one.attempt(Answer(401, problem="HTTP 401, but not from a compilewatch dashboard"))
    assert (one.logged, one.sender.is_refused) == ([], False)
    assert one.sender.next_attempt - one.now <= 2.0


def test_one_window_is_blamed_only_if_a_request_without_it_is_accepted() -> None:
    one = Waiting(3)
    one.attempt(refused(400, "bad_request"))
    assert one.sent == [1, 2, 3]
    one.attempt(refused(400, "bad_request"))
    assert one.sent == [1]
    assert one.attempt(Answer(200, ack=Ack([], 1)))
    assert one.sent == []
    assert len(one.outbox) == 3
    one.attempt(refused(400, "bad_request"))
    assert one.sent == [1]
    assert (len(one.outbox), one.outbox.rejected_windows) == (2, 1)
    assert one.attempt()
    assert one.sent == [2]
    assert one.attempt()
    assert (len(one.outbox), one.outbox.rejected_windows, one.logged) == (0, 1, [])


def test_a_refused_identity_costs_no_window() -> None:
    one = Waiting(3)
    for _ in range(20):
        one.attempt(refused(400, "bad_request"))
    assert (len(one.outbox), one.outbox.rejected_windows) == (3, 0)
    assert len(one.logged) == 1
    assert one.attempt() or one.attempt()
    while len(one.outbox):
        one.attempt()
    assert one.outbox.rejected_windows == 0


def test_a_dashboard_that_is_away_during_the_check_costs_no_window() -> None:
    one = Waiting(1)
    one.attempt(refused(413, "too_large"))
    one.attempt(Answer(503, problem="busy"))
    assert (len(one.outbox), one.outbox.rejected_windows) == (1, 0)
    assert one.attempt()
    assert (len(one.outbox), one.outbox.rejected_windows) == (0, 0)
