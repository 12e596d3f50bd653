"""CUDA graph pools: the memory pools of recorded CUDA graphs, and their size."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import CUDA_HISTORY

PoolId = tuple[int, int]


class RecordedPools:
    """Recordings of this process so far; the recording threads write it."""

    def __init__(self) -> None:
        self.count = 0
        self.pools: dict[int, set[PoolId]] = {}
        """Pool ids by device."""

    def note(self, device: int, pool: object) -> None:
        """Counts a recording into this pool."""
        self.count += 1
        if isinstance(pool, tuple):
            self.pools.setdefault(device, set()).add(pool)


RECORDINGS = RecordedPools()


class GraphPools:
    """Size of the pools, read only after a new recording: a snapshot is slow for large pools."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._sizes: dict[int, int] = {}
        self._snapshot_count = -1

    def size_of(self, cuda: Any, index: int) -> int | None:
        """Bytes reserved for the graphs of a device.

        None without graphs, or if torch cannot snapshot a single pool."""
        pools = RECORDINGS.pools.get(index)
        if not pools or self.problem is not None:
            return None
        if self._snapshot_count != RECORDINGS.count:
            self._snapshot_count = RECORDINGS.count
            self._sizes = {
                device: self._size(cuda, device, ids)
                for device, ids in list(RECORDINGS.pools.items())
            }
        return self._sizes.get(index) if self.problem is None else None

    def _size(self, cuda: Any, device: int, ids: set[PoolId]) -> int:
        segments = [
            segment for pool in list(ids) for segment in self._segments(cuda.memory_snapshot, pool)
        ]
        return sum(segment["total_size"] for segment in segments if segment["device"] == device)

    def _segments(self, snapshot: Any, pool: PoolId) -> list[dict[str, Any]]:
        """The segments of one pool; tries the arguments in turn, because older torch lacks them."""
        try:
            return list(snapshot(pool, include_traces=False))
        except TypeError:
            if CUDA_HISTORY.call(False):
                self.problem = "the job records a memory history, which the snapshot would include"
                return []
        try:
            return list(snapshot(pool))
        except TypeError:
            self.problem = "this torch cannot snapshot a single pool"
            return []
