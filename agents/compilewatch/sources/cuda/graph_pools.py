"""The pools that recorded CUDA graphs keep their memory in, and how much that is."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import CUDA_HISTORY

PoolId = tuple[int, int]


class Recordings:
    """What was recorded in this process so far; written on the threads that record."""

    def __init__(self) -> None:
        self.count = 0
        self.pools: dict[int, set[PoolId]] = {}
        """By device."""

    def note(self, device: int, pool: object) -> None:
        """One more recording, into this pool."""
        self.count += 1
        if isinstance(pool, tuple):
            self.pools.setdefault(device, set()).add(pool)


RECORDINGS = Recordings()


class GraphPools:
    """What the pools of recorded CUDA graphs hold. Asking takes longer the more they hold, so only a new recording is a reason to."""

    def __init__(self) -> None:
        self.why: str | None = None
        self._sizes: dict[int, int] = {}
        self._asked = -1

    def of(self, cuda: Any, index: int) -> int | None:
        """Bytes reserved for the graphs of a device; None where it has none, or where torch cannot show one pool alone."""
        pools = RECORDINGS.pools.get(index)
        if not pools or self.why is not None:
            return None
        if self._asked != RECORDINGS.count:
            self._asked = RECORDINGS.count
            self._sizes = {
                device: self._size(cuda, device, ids)
                for device, ids in list(RECORDINGS.pools.items())
            }
        return self._sizes.get(index) if self.why is None else None

    def _size(self, cuda: Any, device: int, ids: set[PoolId]) -> int:
        segments = [
            segment for pool in list(ids) for segment in self._segments(cuda.memory_snapshot, pool)
        ]
        return sum(segment["total_size"] for segment in segments if segment["device"] == device)

    def _segments(self, snapshot: Any, pool: PoolId) -> list[dict[str, Any]]:
        """The segments of one pool, found by trying: older versions of torch know neither the one argument nor the other."""
        try:
            return list(snapshot(pool, include_traces=False))
        except TypeError:
            if CUDA_HISTORY.answer(False):
                self.why = "the job records a history of its memory, which would come along"
                return []
        try:
            return list(snapshot(pool))
        except TypeError:
            self.why = "this torch cannot show one pool alone"
            return []
