"""Sends closed windows until they are acknowledged: when to try, what an answer means, how long to wait after a failure."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from compilewatch.outbox import Entry, Outbox
from compilewatch.transport import Answer, Transport
from compilewatch.wire.codec import encode
from compilewatch.wire.report import MAX_REPORTS, VERSION, Identity

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
LEAST_RETRY_AFTER, MOST_RETRY_AFTER = 1.0, 300.0
SPLIT_CODES = (400, 413)
"""Statuses that, in our own words, speak about the body: the windows are tried one by one to find the bad one."""


class Sender:
    """Belongs to the agent's thread; `clock` is monotonic."""

    def __init__(
        self,
        transport: Transport,
        outbox: Outbox,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.outbox = outbox
        self.failures = 0
        """Attempts in a row that brought no acknowledgement."""
        self.refusals: dict[str, int] = {}
        """Answers that were no acknowledgement, by what they said."""
        self.next_attempt = 0.0
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._batch_limit = MAX_REPORTS

    def due(self) -> bool:
        """Whether something waits and its time has come."""
        return bool(len(self.outbox)) and self._clock() >= self.next_attempt

    def attempt(self, identity: Identity) -> bool:
        """Sends one batch; True if the server answered for it."""
        batch = self.outbox.batch(self._batch_limit)
        if not batch:
            return True
        try:
            answer = self._transport.send(request_body(identity, batch, time.time()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            answer = Answer(0, problem=f"{type(error).__name__}: {error}"[:300])
        if self._accept(answer, batch):
            self.failures = 0
            self._batch_limit = MAX_REPORTS
            self.next_attempt = self._clock()
            return True
        self._refused(answer, batch)
        return False

    def _accept(self, answer: Answer, batch: list[Entry]) -> bool:
        """Applies an acknowledgement; True if it settled at least one of the windows that were sent."""
        if answer.ack is None:
            return False
        settled = self.outbox.acknowledged(answer.ack.acked)
        for refusal in answer.ack.rejected:
            count = self.outbox.rejected([refusal.seq])
            settled += count
            if count:
                self._count(f"rejected: {refusal.code}")
        if not settled:
            answer.problem = answer.problem or "an acknowledgement that names none of the windows that were sent"
        return settled > 0

    def _refused(self, answer: Answer, batch: list[Entry]) -> None:
        self._count(answer.problem)
        if answer.final and answer.status in SPLIT_CODES and answer.code != "key_in_url":
            if len(batch) == 1:
                self.outbox.rejected([batch[0].seq])
            self._batch_limit = 1
        self.next_attempt = self._clock() + self._wait(answer.retry_after)
        self.failures += 1

    def _count(self, problem: str) -> None:
        if problem in self.refusals or len(self.refusals) < 100:
            self.refusals[problem] = self.refusals.get(problem, 0) + 1

    def _wait(self, retry_after: str) -> float:
        """Equal jitter, 1 to 60 s; what the server asks for is honoured within [1, 300] s plus up to a quarter."""
        asked = _seconds(retry_after)
        if asked is not None:
            return min(max(asked, LEAST_RETRY_AFTER), MOST_RETRY_AFTER) * (1 + self._chance() / 4)
        ceiling = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self.failures, 10))
        return ceiling / 2 + self._chance() * ceiling / 2


def request_body(identity: Identity, batch: list[Entry], sent: float) -> bytes:
    """The JSON of a request around windows whose bytes do not change any more."""
    head = json.dumps({"v": VERSION, "sent": sent, "instance": encode(identity)}, separators=(",", ":"), allow_nan=False)
    return head[:-1].encode() + b',"reports":[' + b",".join(entry.body for entry in batch) + b"]}"


def _seconds(retry_after: str) -> float | None:
    """Retry-After as seconds from now: a number or a date; None for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
