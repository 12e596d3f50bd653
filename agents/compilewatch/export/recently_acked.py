"""Windows that were acknowledged a short while ago, in case the dashboard turns out not to hold them any more."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from compilewatch.export.outbox import Entry
from compilewatch.wire.messages import SeqRange

KEPT_SECONDS = 600.0
MAX_BYTES = 1 << 20
MAX_RESENDS = 3
"""How often a window is sent again: a server that acknowledges and never holds is not asked for ever."""


class Tail:
    """Belongs to the agent's thread; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: deque[tuple[float, Entry]] = deque()
        self._size = 0
        self._resends: dict[SeqRange, int] = {}

    def add(self, entries: list[Entry]) -> None:
        """Keeps windows that were acknowledged now."""
        now = self._clock()
        for entry in entries:
            self._kept.append((now, entry))
            self._size += len(entry.body)
        while self._kept and (self._size > MAX_BYTES or self._kept[0][0] < now - KEPT_SECONDS):
            _, gone = self._kept.popleft()
            self._size -= len(gone.body)
            self._resends.pop(gone.seq, None)

    def lost(self, held: list[SeqRange]) -> list[Entry]:
        """Hands back the windows that none of these ranges holds: a database was restored, or another one took over."""
        found: list[Entry] = []
        kept: deque[tuple[float, Entry]] = deque()
        for at, entry in self._kept:
            first, last = entry.seq
            known = any(start <= first and last <= end for start, end in held)
            if known or self._resends.get(entry.seq, 0) >= MAX_RESENDS:
                kept.append((at, entry))
            else:
                found.append(entry)
                self._resends[entry.seq] = self._resends.get(entry.seq, 0) + 1
        self._kept = kept
        self._size -= sum(len(entry.body) for entry in found)
        return found
