"""GPU time of some calls: pairs of CUDA events around them, read later on the agent's thread, never with a synchronisation."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from compilewatch.lines import Line
from compilewatch.parity.later import LATER
from compilewatch.recorder import Recorder
from compilewatch.sampling import chance
from compilewatch.sources import Answer, Source

SHARE = 0.0005
"""What sampling may add to a region's own time: of the hundredth that watching may cost, most goes into timing every call."""
MAX_EVERY = 10_000
MAX_PAIRS = 64
RELAXED = 2
WAITING: Answer = ("no", "the job has not started CUDA")

Pair = tuple[Any, Any, float, float]
"""Start event, end event, the host clock when the call began, and what recording the start cost."""


class GpuTime(Source):
    """Waits until the job itself has started CUDA. Asking for an event while a thread captures a graph can break that capture, so
    the agent's thread first makes its own capture mode relaxed; where it cannot, there is no GPU time."""

    name = "gpu_time"
    module = "torch.cuda"

    def __init__(self) -> None:
        self._probes: list[EventProbe] = []
        self._relaxed_thread: int | None = None
        self._answer: Answer = WAITING

    def install(self, recorder: Recorder) -> Answer:
        LATER.end()
        self._cuda = sys.modules["torch.cuda"]
        if not all(hasattr(self._cuda, name) for name in ("Event", "is_initialized", "is_current_stream_capturing")):
            self._answer = ("no", "this torch has no CUDA events")
            LATER.end(self._answer[1])
        return self._answer

    def poll(self, recorder: Recorder) -> Answer | None:
        """Starts when CUDA is there, and reads what the GPU has finished."""
        if self._answer is WAITING and self._cuda.is_initialized():
            self._begin(recorder)
            return self._answer
        if self._answer[0] != "yes":
            return None
        try:
            self._relax()
            for probe in self._probes:
                probe.read()
            LATER.read(self._cuda)
        except Exception as error:
            self._stop(recorder, f"{type(error).__name__}: {error}"[:200])
            raise
        return None if self._answer[0] == "yes" else self._answer

    def _begin(self, recorder: Recorder) -> None:
        try:
            self._relax()
        except (OSError, AttributeError) as error:
            self._answer = ("no", f"the agent's thread cannot relax its capture mode: {error}"[:200])
            LATER.end(self._answer[1])
            return
        self._answer = ("yes", "")
        LATER.begin()
        recorder.time_with(self._probe_for)

    def _stop(self, recorder: Recorder, why: str) -> None:
        self._answer = ("no", why)
        LATER.end(why)
        recorder.time_with(None)
        self._probes = []

    def _probe_for(self, line: Line) -> EventProbe:
        probe = EventProbe(self._cuda, line)
        self._probes.append(probe)
        return probe

    def _relax(self) -> None:
        """Once for each thread that reads events: in a new instance that is another one."""
        if self._relaxed_thread == threading.get_ident():
            return
        mode = ctypes.c_int(RELAXED)
        status = _cuda_runtime().cudaThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        if status != 0:
            raise OSError(f"cudaThreadExchangeStreamCaptureMode answered {status}")
        self._relaxed_thread = threading.get_ident()

    def uninstall(self) -> None:
        self._probes = []
        LATER.end()


def _cuda_runtime() -> ctypes.CDLL:
    """The CUDA runtime this process has loaded; no other is ever loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rpartition(" ")[2]
        if "libcudart" in path and ".so" in path:
            return ctypes.CDLL(path)
    raise OSError("no CUDA runtime library is loaded as a file of its own")


class EventProbe:
    """The sampled calls of one line. It samples so rarely that its own cost stays below `SHARE` of the region's time on the host."""

    def __init__(self, cuda: Any, line: Line) -> None:
        self.off = False
        self._cuda = cuda
        self._line = line
        self._countdown = 0
        self._free: list[tuple[Any, Any]] = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(4)]
        self._made = len(self._free)
        self._waiting: deque[tuple[Any, Any]] = deque()

    def begin(self) -> Pair | None:
        """The pair of a sampled call, its first event recorded."""
        self._countdown -= 1
        if self._countdown > 0 or self.off:
            return None
        began = time.perf_counter()
        try:
            if self._cuda.is_current_stream_capturing():
                return None
            start, end = self._free.pop() if self._free else self._another()
            start.record()
        except Exception:  # noqa: BLE001 - inside a call of the job; the reader says why when it meets the same fault
            self.off = True
            return None
        now = time.perf_counter()
        return start, end, now, now - began

    def _another(self) -> tuple[Any, Any]:
        if self._made >= MAX_PAIRS:
            raise OverflowError("the GPU is too far behind")
        self._made += 1
        return self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)

    def end(self, pair: Pair) -> None:
        """Records the second event and decides when to sample next."""
        start, end, began, cost = pair
        now = time.perf_counter()
        try:
            if self._cuda.is_current_stream_capturing():
                self._free.append((start, end))
                return
            end.record()
        except Exception:  # noqa: BLE001 - as above
            self.off = True
            return
        self._waiting.append((start, end))
        every = (cost + time.perf_counter() - now) / (SHARE * max(now - began, 1e-6))
        # Of a region that is sampled already only its timed calls come here.
        every /= self._line.sampling.ratio
        # With chance in it, so that sampling does not fall into step with the job.
        self._countdown = int(min(MAX_EVERY, max(1.0, every)) * (0.5 + chance())) + 1

    def drop(self, pair: Pair) -> None:
        """The call raised: its pair is free again."""
        self._free.append((pair[0], pair[1]))

    def read(self) -> None:
        """Takes the times of the pairs that the GPU has finished."""
        while self._waiting and self._waiting[0][1].query():
            start, end = self._waiting.popleft()
            self._line.gpu.append(start.elapsed_time(end) / 1e3)
            self._free.append((start, end))
