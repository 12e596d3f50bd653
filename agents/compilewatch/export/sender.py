"""Delivery loop: sends queued windows until the dashboard acknowledges them.

Retries use exponential backoff with equal jitter (1 to 60 s), or the server's Retry-After within 1
to 300 s. A failure never drops a window; only a permanent refusal of that window does.
- Authenticity: an answer counts only if it carries the protocol's marker. A proxy's error page is
  therefore a failure, never a refusal.
- Poison message: if the server refuses a whole request for its body (`SPLIT_CODES`), the sender
  switches to one window per request. If a single window is refused, the sender sends a request
  without windows. If the server accepts that request, the window itself is at fault, and its next
  refusal drops it.
- Lost acknowledgements: the server names the ranges that it holds. Windows that it acknowledged
  within the last minutes and no longer holds are queued again.
- Refusal of everything (for example a revoked key): the sender retries every few minutes and keeps
  all windows.

Only the agent's thread calls the sender; there is no lock. One attempt is one request with at most
`MAX_REPORTS` windows. Each distinct problem is printed once, ten in total.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from email.utils import mktime_tz, parsedate_tz
from typing import Any

from compilewatch.export.advice import CERTIFICATE, OTHER_PROGRAM, advice_of
from compilewatch.export.outbox import Entry, Outbox
from compilewatch.export.recently_acked import RecentlyAcked
from compilewatch.export.transport import Answer, Transport
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import MAX_REPORTS, VERSION, Identity, SeqRange

FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0
LEAST_RETRY_AFTER, MOST_RETRY_AFTER = 1.0, 300.0
REFUSED_WAIT = 300.0
"""Longest wait in seconds between attempts while the dashboard refuses every request, for example
for its key. A person has to act first.
"""
CONFLICTS = ("range_conflict", "partial_overlap")
"""Refusals of a window because a copy of this process uses the same instance id and numbers."""
SILENT_FAILURES = 4
"""Consecutive failures before the first warning, so that a restart of the dashboard causes none."""
SPLIT_CODES = (400, 413)
"""Statuses that refuse the body of a request.

The windows are then sent one by one to find the bad one.
"""


class Sender:
    """Only the agent's thread uses it; `clock` is monotonic.

    With a tail, the sender sends windows again that the dashboard lost after acknowledging them.
    """

    def __init__(
        self,
        transport: Transport,
        outbox: Outbox,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        tail: RecentlyAcked | None = None,
        say: Callable[[str], None] = lambda sentence: None,
        obey: Callable[[list[dict[str, Any]]], None] = lambda commands: None,
        renews: bool = False,
    ) -> None:
        self._renews = renews
        """Whether the owner of the windows takes a new id if another process uses this one."""
        self.outbox = outbox
        self.failures = 0
        """Consecutive attempts without an acknowledgement."""
        self.refusals: dict[str, int] = {}
        """Answers without an acknowledgement, counted by problem."""
        self.is_refused = False
        """Whether the dashboard refused the last request permanently, so that only a person can
        resolve it.
        """
        self.next_attempt = 0.0
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._tail = tail
        self._say = say
        self._obey = obey
        self._batch_limit = MAX_REPORTS
        self._suspect: SeqRange | None = None
        """A window that was refused in a request of its own; a request without windows finds out
        whether the window or the connection settings are at fault.
        """
        self._bad_window: SeqRange | None = None
        """The suspect after a request without windows was accepted; the next refusal drops this
        window.
        """
        self._warned: set[str] = set()

    def is_due(self) -> bool:
        """Returns whether a window is queued and the retry time has come."""
        return bool(len(self.outbox)) and self._clock() >= self.next_attempt

    def attempt(self, identity: Identity) -> bool:
        """Sends one batch; returns whether the server accepted it."""
        batch = self.outbox.next_batch(self._batch_limit) if self._suspect is None else []
        if not batch and self._suspect is None:
            return True
        answer, self.is_refused = self._send(identity, batch), False
        accepted = (
            self._accept(answer)
            if self._suspect is None
            else self._resolve_suspect(answer, self._suspect)
        )
        if accepted:
            self.failures = 0
            self.next_attempt = self._clock()
        else:
            self._handle_refusal(answer, batch)
        return accepted

    def _send(self, identity: Identity, batch: list[Entry]) -> Answer:
        try:
            return self._transport.send(request_body(identity, batch, time.time()))
        except (OSError, ValueError) as error:
            return Answer(
                0, problem=f"{type(error).__name__}: {error}"[:300], advice=advice_of(error)
            )

    def _accept(self, answer: Answer) -> bool:
        """Applies an acknowledgement; returns whether it settled a window of the batch."""
        if answer.ack is None:
            answer.advice = answer.advice or ("" if answer.code else OTHER_PROGRAM)
            return False
        acknowledged = self.outbox.acknowledge(answer.ack.acked)
        settled = len(acknowledged)
        for refusal in answer.ack.rejected:
            keeps = self._renews and refusal.code in CONFLICTS
            count = (
                self.outbox.release_contested([refusal.seq])
                if keeps
                else self.outbox.reject([refusal.seq])
            )
            settled += count
            if count:
                self._count(f"rejected: {refusal.code}")
        if not settled:
            answer.problem = (
                answer.problem or "the acknowledgement names none of the windows that were sent"
            )
            return False
        self._batch_limit = MAX_REPORTS
        self._resend(acknowledged, answer.ack)
        if answer.ack.commands:
            self._obey(answer.ack.commands)
        return True

    def _resend(self, acknowledged: list[Entry], ack: Ack) -> None:
        """Queues windows again that the server acknowledged earlier and no longer holds."""
        if self._tail is not None:
            self._tail.add(acknowledged)
            lost = self._tail.pop_lost(
                ack.held if ack.held is not None else [(1, ack.next_seq - 1)]
            )
            if lost:
                self._count("windows sent again: the dashboard no longer holds them")
                self.outbox.restore(lost)

    def reset_history(self) -> None:
        """Forgets acknowledged windows after a change of id: they belong to the earlier id."""
        if self._tail is not None:
            self._tail = RecentlyAcked(self._clock)

    def _resolve_suspect(self, answer: Answer, suspect: SeqRange) -> bool:
        """Handles the answer to a request without windows; returns whether it was accepted."""
        self._suspect = None
        self._bad_window = suspect if answer.ack is not None else None
        return answer.ack is not None

    def _handle_refusal(self, answer: Answer, batch: list[Entry]) -> None:
        self._count(answer.problem)
        wait = self._wait(answer.retry_after)
        if answer.final and answer.status in SPLIT_CODES and batch:
            self._batch_limit = 1
            if len(batch) == 1 and batch[0].seq == self._bad_window:
                self.outbox.reject([batch[0].seq])
            elif len(batch) == 1:
                self._suspect = batch[0].seq
        elif answer.final:
            self.is_refused = True
            why = f"the dashboard refuses the reports of this process ({printable(answer.problem)})"
            self._warn_once(answer.code, f"{why}; they are kept and retried every few minutes")
            wait = max(wait, REFUSED_WAIT / 2 + self._chance() * REFUSED_WAIT / 2)
        self.next_attempt = self._clock() + wait
        self.failures += 1
        if answer.advice == CERTIFICATE or (answer.advice and self.failures > SILENT_FAILURES):
            why = (
                "the reports of this process do not reach the dashboard "
                f"({printable(answer.problem)})"
            )
            self._warn_once(answer.advice, f"{why}; they are kept and retried; {answer.advice}")

    def _warn_once(self, reason: str, sentence: str) -> None:
        """Warns once per reason, because only a person can resolve it."""
        if reason not in self._warned and len(self._warned) < 10:
            self._warned.add(reason)
            self._say(sentence)

    def _count(self, problem: str) -> None:
        if problem in self.refusals or len(self.refusals) < 100:
            self.refusals[problem] = self.refusals.get(problem, 0) + 1

    def _wait(self, retry_after: str) -> float:
        """Returns the wait in seconds: 1 to 60 s with equal jitter, or the server's Retry-After
        within 1 to 300 s plus up to a quarter.
        """
        asked = _retry_after_seconds(retry_after)
        if asked is not None:
            return min(max(asked, LEAST_RETRY_AFTER), MOST_RETRY_AFTER) * (1 + self._chance() / 4)
        ceiling = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self.failures, 10))
        return ceiling / 2 + self._chance() * ceiling / 2


def printable(text: str) -> str:
    """Replaces unprintable characters, so that the text is one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def request_body(identity: Identity, batch: list[Entry], sent: float) -> bytes:
    """Builds the JSON of a request from windows that are already encoded."""
    head = json.dumps(
        {"v": VERSION, "sent": sent, "instance": encode(identity)},
        separators=(",", ":"),
        allow_nan=False,
    )
    return head[:-1].encode() + b',"reports":[' + b",".join(entry.body for entry in batch) + b"]}"


def _retry_after_seconds(retry_after: str) -> float | None:
    """Parses Retry-After (a number or a date) as seconds from now; None for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_tz(text)
        return None if date is None else mktime_tz(date) - time.time()
    except (ValueError, OverflowError):
        return None
