"""TTL cache: a function cache that drops unused answers, so that ended processes free their
memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, TypeVarTuple

A = TypeVarTuple("A")
T = TypeVar("T")


class TtlCache(Generic[*A, T]):
    """Cache of a pure function's answers in the current and the previous period.

    An answer is retained for one to two periods (seconds) after its last use, at most `2 * most`
    answers in total. Calls from several threads are safe: at worst, two threads compute the same
    answer.
    """

    def __init__(
        self,
        function: Callable[[*A], T],
        period: float,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._function, self._period, self._most, self._clock = function, period, most, clock
        self._now: dict[Hashable, T] = {}
        self._before: dict[Hashable, T] = {}
        self._until = clock() + period

    def __call__(self, *args: *A) -> T:
        self._turn()
        found = self._now.get(args)
        if found is None:
            found = self._before.get(args) or self._function(*args)
            self._now[args] = found
        return found

    def __len__(self) -> int:
        return len(self._now.keys() | self._before.keys())

    def _turn(self) -> None:
        """Start a new period if the current one is over or full; drop answers unused for two
        periods."""
        now = self._clock()
        if now < self._until and len(self._now) < self._most:
            return
        self._before = self._now if now < self._until + self._period else {}
        self._now, self._until = {}, now + self._period
