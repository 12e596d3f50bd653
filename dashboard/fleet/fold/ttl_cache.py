"""What was worked out of late: answers that nobody asked for again go, so that processes which come
and go leave nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, TypeVarTuple

A = TypeVarTuple("A")
T = TypeVar("T")


class TtlCache(Generic[*A, T]):
    """A function that answers the same for the same arguments, with its answers of the present and
    of the last period.

    An answer is kept for one to two periods (seconds) after it was last asked for, and there are at
    most twice `most`. Any thread may ask: at worst an answer is worked out twice."""

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
        """Begins another period where this one is over or full; after two without a question
        nothing is left."""
        now = self._clock()
        if now < self._until and len(self._now) < self._most:
            return
        self._before = self._now if now < self._until + self._period else {}
        self._now, self._until = {}, now + self._period
