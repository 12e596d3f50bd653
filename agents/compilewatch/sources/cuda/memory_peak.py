"""Peak-memory probe: the GPU memory peak of the process, before and after a compilation."""

from __future__ import annotations

import threading

from compilewatch.runtime.torch_internals import CUDA_DEVICE, CUDA_MEMORY, CUDA_STARTED


class MemoryPeak(threading.local):
    """Holds the peak at the start of the compilation on each thread."""

    def __init__(self) -> None:
        self._start_bytes: int | None = None

    def record_start(self) -> None:
        """Read the peak at the start of a compilation on this thread."""
        self._start_bytes = _read_peak_bytes()

    def read_new_peak(self) -> int | None:
        """Return the peak in bytes if this thread's compilation raised the peak, otherwise None."""
        before, self._start_bytes = self._start_bytes, None
        now = _read_peak_bytes() if before is not None else None
        return now if now is not None and before is not None and now > before else None


def _read_peak_bytes() -> int | None:
    """Return the peak of the process; None if the job has not initialised CUDA."""
    started, device, memory = CUDA_STARTED.find(), CUDA_DEVICE.find(), CUDA_MEMORY.find()
    try:
        return int(memory(device())["allocated_bytes"]["all"]["peak"]) if started() else None
    except (TypeError, KeyError, ValueError, RuntimeError):
        return None
