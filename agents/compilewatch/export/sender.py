"""Sends closed windows until they are acknowledged: when to try, what an answer means, how long to wait after a failure."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

from compilewatch.export.advice import ANOTHER, CERTIFICATE, advice_of
from compilewatch.export.http.response import unix_of
from compilewatch.export.outbox import Entry, Outbox
from compilewatch.export.recently_acked import Tail
from compilewatch.export.transport import Answer, Transport
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import MAX_REPORTS, VERSION, Identity, SeqRange

FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0
LEAST_RETRY_AFTER, MOST_RETRY_AFTER = 1.0, 300.0
REFUSED_WAIT = 300.0
"""Seconds at most between two tries while the dashboard refuses everything, for example the key: a person has to act first."""
CONFLICTS = ("range_conflict", "partial_overlap")
"""Refusals of a window whose numbers another process used: a copy of this one, with the same instance id."""
SILENT_FAILURES = 4
"""Tries in a row that may fail before it is said: a dashboard that starts again is back by then."""
SPLIT_CODES = (400, 413)
"""Statuses that, in our own words, speak about the body: the windows are tried one by one to find the bad one."""


class Sender:
    """Belongs to the agent's thread; `clock` is monotonic. With a tail, what the dashboard lost again is sent again."""

    def __init__(
        self,
        transport: Transport,
        outbox: Outbox,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        tail: Tail | None = None,
        say: Callable[[str], None] = lambda sentence: None,
        obey: Callable[[list[dict[str, Any]]], None] = lambda commands: None,
        renews: bool = False,
    ) -> None:
        self._renews = renews
        """Whether whose windows these are takes another id when another process uses this one."""
        self.outbox = outbox
        self.failures = 0
        """Attempts in a row that brought no acknowledgement."""
        self.refusals: dict[str, int] = {}
        """Answers that were no acknowledgement, by what they said."""
        self.refused = False
        """Whether the last answer refused everything in our own words: only a person can change that."""
        self.next_attempt = 0.0
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._tail = tail
        self._say = say
        self._obey = obey
        self._batch_limit = MAX_REPORTS
        self._suspect: SeqRange | None = None
        """A window whose request was refused although it was alone in it: is it that window, or is it us?"""
        self._guilty: SeqRange | None = None
        """The same after a request without any window was taken: refused once more, it is dropped."""
        self._said: set[str] = set()

    def due(self) -> bool:
        """Whether something waits and its time has come."""
        return bool(len(self.outbox)) and self._clock() >= self.next_attempt

    def attempt(self, identity: Identity) -> bool:
        """Sends one batch; True if the server answered for it."""
        batch = self.outbox.batch(self._batch_limit) if self._suspect is None else []
        if not batch and self._suspect is None:
            return True
        answer, self.refused = self._ask(identity, batch), False
        accepted = (
            self._accept(answer) if self._suspect is None else self._clear(answer, self._suspect)
        )
        if accepted:
            self.failures = 0
            self.next_attempt = self._clock()
        else:
            self._refused(answer, batch)
        return accepted

    def _ask(self, identity: Identity, batch: list[Entry]) -> Answer:
        try:
            return self._transport.send(request_body(identity, batch, time.time()))
        except (OSError, ValueError) as error:
            return Answer(
                0, problem=f"{type(error).__name__}: {error}"[:300], advice=advice_of(error)
            )

    def _accept(self, answer: Answer) -> bool:
        """Applies an acknowledgement; True if it settled at least one of the windows that were sent."""
        if answer.ack is None:
            answer.advice = answer.advice or ("" if answer.code else ANOTHER)
            return False
        acknowledged = self.outbox.acknowledged(answer.ack.acked)
        settled = len(acknowledged)
        for refusal in answer.ack.rejected:
            keeps = self._renews and refusal.code in CONFLICTS
            count = (
                self.outbox.contested([refusal.seq])
                if keeps
                else self.outbox.rejected([refusal.seq])
            )
            settled += count
            if count:
                self._count(f"rejected: {refusal.code}")
        if not settled:
            answer.problem = (
                answer.problem or "an acknowledgement that names none of the windows that were sent"
            )
            return False
        self._batch_limit = MAX_REPORTS
        self._resend(acknowledged, answer.ack)
        if answer.ack.commands:
            self._obey(answer.ack.commands)
        return True

    def _resend(self, acknowledged: list[Entry], ack: Ack) -> None:
        """Puts the windows back in line that the server held once and does not hold now."""
        if self._tail is not None:
            self._tail.add(acknowledged)
            lost = self._tail.lost(ack.held if ack.held is not None else [(1, ack.next_seq - 1)])
            if lost:
                self._count("windows sent again: the dashboard did not hold them any more")
                self.outbox.restore(lost)

    def begin_again(self) -> None:
        """Under another id: what was acknowledged before belongs to the earlier one."""
        if self._tail is not None:
            self._tail = Tail(self._clock)

    def _clear(self, answer: Answer, suspect: SeqRange) -> bool:
        """After a request without any window; True if that one was taken."""
        self._suspect = None
        self._guilty = suspect if answer.ack is not None else None
        return answer.ack is not None

    def _refused(self, answer: Answer, batch: list[Entry]) -> None:
        self._count(answer.problem)
        wait = self._wait(answer.retry_after)
        if answer.final and answer.status in SPLIT_CODES and batch:
            self._batch_limit = 1
            if len(batch) == 1 and batch[0].seq == self._guilty:
                self.outbox.rejected([batch[0].seq])
            elif len(batch) == 1:
                self._suspect = batch[0].seq
        elif answer.final:
            self.refused = True
            why = f"the dashboard refuses the reports of this process ({printable(answer.problem)})"
            self._tell(answer.code, f"{why}; they are kept, and tried again every few minutes")
            wait = max(wait, REFUSED_WAIT / 2 + self._chance() * REFUSED_WAIT / 2)
        self.next_attempt = self._clock() + wait
        self.failures += 1
        if answer.advice == CERTIFICATE or (answer.advice and self.failures > SILENT_FAILURES):
            why = f"the reports of this process do not arrive ({printable(answer.problem)})"
            self._tell(answer.advice, f"{why}; they are kept and tried again; {answer.advice}")

    def _tell(self, reason: str, sentence: str) -> None:
        """Once for each reason: only a person can do something about it."""
        if reason not in self._said and len(self._said) < 10:
            self._said.add(reason)
            self._say(sentence)

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


def printable(text: str) -> str:
    """The text on one line, whatever it came from."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def request_body(identity: Identity, batch: list[Entry], sent: float) -> bytes:
    """The JSON of a request around windows whose bytes do not change any more."""
    head = json.dumps(
        {"v": VERSION, "sent": sent, "instance": encode(identity)},
        separators=(",", ":"),
        allow_nan=False,
    )
    return head[:-1].encode() + b',"reports":[' + b",".join(entry.body for entry in batch) + b"]}"


def _seconds(retry_after: str) -> float | None:
    """Retry-After as seconds from now: a number or a date; None for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = unix_of(text)
    return None if moment is None else moment - time.time()
