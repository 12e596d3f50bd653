"""Simulated instances of a soak: new instances each day, which take turns and resend the same bytes
until a report is acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Identity

from tests.bench.soak_books import Books
from tests.bench.soak_clock import DAY
from tests.dashboard.requests import instance_id, request_make

CALLS = 100


class Crowd(threading.Thread):
    """`of_a_day` instances with `rate` reports per second in total; a version lives for `days`."""

    def __init__(
        self,
        *,
        port: int,
        key: str,
        clock: Callable[[], float],
        books: Books,
        days: int,
        of_a_day: int,
        rate: float,
    ) -> None:
        super().__init__(daemon=True)
        self._port, self._key, self._clock, self._books = port, key, clock, books
        self._days, self._of_a_day, self._pause = days, of_a_day, 1 / rate
        self._begun = int(clock() // DAY)
        self.over = threading.Event()

    def run(self) -> None:
        """Sends until it is stopped; a report that is not acknowledged by the end of the next day
        is dropped."""
        numbers: dict[int, int] = {}
        identities: dict[int, Identity] = {}
        turn = 0
        while not self.over.wait(self._pause):
            day = int(self._clock() // DAY) - self._begun
            turn = (turn + 1) % self._of_a_day
            who = day * self._of_a_day + turn + 1
            number = numbers[who] = numbers.get(who, 0) + 1
            version = f"crowd-{day // self._days}"
            request = request_make(
                model="crowd",
                version=version,
                instance=who,
                first_seq=number,
                window=10.0,
                end=self._clock(),
                environment="prod",
            )
            # The identity of a process must not change: the fold caches a sender by its identity.
            request.instance = identities.setdefault(who, request.instance)
            self._books.note(version, instance_id(who), number, CALLS)
            if self._delivered(dumps(request), number, until=self._clock() // DAY + 1):
                self._books.acked[instance_id(who)].add(number)

    def _delivered(self, body: bytes, number: int, *, until: float) -> bool:
        while not self._sent(body, number):
            if self.over.wait(0.5) or self._clock() // DAY > until:
                return False
        return True

    def _sent(self, body: bytes, number: int) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
            headers = {
                "Authorization": f"Bearer {self._key}",
                "Content-Type": "application/json",
                "Connection": "close",
            }
            connection.request("POST", "/api/v1/reports", body, headers)
            answer = connection.getresponse()
            answered = json.loads(answer.read())
            return answer.status == 200 and [number, number] in answered["acked"]
        return False
