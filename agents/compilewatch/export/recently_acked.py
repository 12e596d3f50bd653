"""Retransmission buffer: recently acknowledged windows, in case the dashboard loses them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from compilewatch.export.outbox import Entry
from compilewatch.wire.messages import SeqRange

RETENTION_SECONDS = 600.0
MAX_BYTES = 1 << 20
MAX_RESENDS = 3
"""Maximum number of times one window is sent again, in case a server acknowledges windows without
storing them.
"""


class RecentlyAcked:
    """Only the agent's thread uses it; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recent: deque[tuple[float, Entry]] = deque()
        self._size = 0
        self._resends: dict[SeqRange, int] = {}

    def add(self, entries: list[Entry]) -> None:
        """Stores windows that were just acknowledged."""
        now = self._clock()
        for entry in entries:
            self._recent.append((now, entry))
            self._size += len(entry.body)
        while self._recent and (
            self._size > MAX_BYTES or self._recent[0][0] < now - RETENTION_SECONDS
        ):
            _, evicted = self._recent.popleft()
            self._size -= len(evicted.body)
            self._resends.pop(evicted.seq, None)

    def pop_lost(self, held: list[SeqRange]) -> list[Entry]:
        """Removes and returns the windows outside these ranges: a database was restored or
        replaced.
        """
        missing: list[Entry] = []
        remaining: deque[tuple[float, Entry]] = deque()
        for at, entry in self._recent:
            first, last = entry.seq
            is_stored = any(start <= first and last <= end for start, end in held)
            if is_stored or self._resends.get(entry.seq, 0) >= MAX_RESENDS:
                remaining.append((at, entry))
            else:
                missing.append(entry)
                self._resends[entry.seq] = self._resends.get(entry.seq, 0) + 1
        self._recent = remaining
        self._size -= sum(len(entry.body) for entry in missing)
        return missing
