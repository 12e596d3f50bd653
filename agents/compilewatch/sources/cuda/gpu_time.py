"""GPU time of some calls: pairs of CUDA events around them, read later on the agent's thread, never with a synchronisation."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from compilewatch.recording.call_sampling import chance
from compilewatch.recording.recorder import Recorder
from compilewatch.recording.series_buffer import Line
from compilewatch.sources import Answer, Source
from compilewatch.sources.cuda.deferred_reads import LATER

SHARE = 0.0015
"""What sampling may add to the time in which a region is called: of the hundredth that watching may cost, most goes into timing calls.
A pair of events costs up to 180 us of a step on an H100, which leaves 80 samples in a window of 10 s."""
LEAST_GAP_S = 1 / 8
"""Between two samples of one region: 80 in a window of 10 s. In a CUDA graph of 70 us each delays the GPU by up to 170 us, of which the
thread's own clock sees a part."""
LONGEST_GAP_S = 10.0
MOST_AHEAD = 1.5
"""By how much the samples of a second may cost more than their share: calls that were rare may come in a burst."""
LEAST_READ_S = 0.5
"""Fewer seconds say little of how often calls come."""
MAX_PAIRS = 64
COSTS = 32
"""Pairs whose least cost is what one costs, in processor seconds of the thread. Where threads contend for the interpreter, most of the time
between two readings of a clock is another thread's work. Where they contend for the driver, a thread spins for it, as its next launch would
have done: 0.8 and 1.6 ms in two of three pairs with 4 and 8 threads that run 50 ms ahead on an H200, 0.2 ms in the third. By their median,
a window had 20 and 31 samples."""
RELAXED = 2
WAITING: Answer = ("no", "the job has not started CUDA")

Pair = tuple[Any, Any, float]
"""Start event, end event, and the processor seconds that recording the start took of the thread."""


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
        if not all(
            hasattr(self._cuda, name)
            for name in ("Event", "is_initialized", "is_current_stream_capturing")
        ):
            self._answer = ("no", "this torch has no CUDA events")
            LATER.end(self._answer[1])
        return self._answer

    def poll(self, recorder: Recorder) -> Answer | None:
        """Starts when CUDA is there, and reads what the GPU has finished."""
        if self._answer is WAITING and self._cuda.is_initialized():
            self._begin(recorder)
            return self._answer
        if self._answer[0] == "no":
            return None
        before = self._answer
        try:
            self._relax()
            for probe in self._probes:
                probe.read()
            LATER.read(self._cuda)
        except Exception as error:
            self._stop(recorder, f"{type(error).__name__}: {error}"[:200])
            raise
        self._answer = self._found()
        return None if self._answer == before else self._answer

    def _found(self) -> Answer:
        """What the probes can see: errors of CUDA first, then samples that found no room."""
        errors = [f"{probe.line.region.name}: {probe.off}" for probe in self._probes if probe.off]
        if errors:
            return (
                "partly",
                f"no GPU time of {len(errors)} of {len(self._probes)} regions, such as {errors[0]}"[
                    :200
                ],
            )
        skipped = sum(probe.skipped for probe in self._probes)
        if skipped:
            return (
                "yes",
                f"{skipped:,} samples were skipped: {MAX_PAIRS} pairs of events waited for the GPU",
            )
        return "yes", ""

    def _begin(self, recorder: Recorder) -> None:
        try:
            self._relax()
        except (OSError, AttributeError) as error:
            self._answer = (
                "no",
                f"the agent's thread cannot relax its capture mode: {error}"[:200],
            )
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
    """The sampled calls of one line.

    A pair of events costs some microseconds of the thread that records it, so samples keep a distance in time, `gap`, in which that cost
    is the share `SHARE`. The distance is counted in calls, by how often calls came in the last second: the time between two calls says
    little where threads make them in bursts. A full pool skips the sample and counts it; only an error of CUDA ends the probe."""

    def __init__(self, cuda: Any, line: Line) -> None:
        self.off = ""
        """The error that ended it; empty: none."""
        self.skipped = 0
        """Samples that were due while all pairs of the pool waited for the GPU."""
        self._cuda = cuda
        self.line = line
        self._countdown = 0
        """Calls until the next sample."""
        self._calls = 0
        """Calls since the last reading; threads that count at once may lose one."""
        self._rate = 0.0
        """Calls in a second, as the last reading found them; 0: none, and samples keep their distance by the clock."""
        self._samples = 0
        """Since the last reading, about a second ago."""
        self._sampled = -math.inf
        self._read = time.perf_counter()
        self._costs: deque[float] = deque(maxlen=COSTS)
        self._gap = LEAST_GAP_S
        self._free: list[tuple[Any, Any]] = [self._pair() for _ in range(4)]
        self._made = len(self._free)
        self._waiting: deque[tuple[Any, Any]] = deque()

    def begin(self) -> Pair | None:
        """The pair of a sampled call, its first event recorded; None for a call that is not sampled."""
        self._calls += 1
        self._countdown -= 1
        if self._countdown > 0 or self.off:
            return None
        now = time.perf_counter()
        if (
            not self._rate and now - self._sampled < self._gap
        ) or self._samples * self._gap > MOST_AHEAD * max(1.0, now - self._read):
            return None
        began = time.thread_time()
        try:
            if self._cuda.is_current_stream_capturing():
                return None
            self._sampled = now
            self._samples += 1
            # With chance in it, so that sampling does not fall into step with the job, and the mean distance is `gap`.
            self._countdown = int(self._rate * self._gap * (0.5 + chance()) + chance())
            pair = self._take()
            if pair is None:
                self.skipped += 1
                return None
            pair[0].record()
        except Exception as error:  # noqa: BLE001 - inside a call of the job; the reader says it
            self._end(error)
            return None
        return *pair, time.thread_time() - began

    def _take(self) -> tuple[Any, Any] | None:
        """A pair of the pool; None where all of them wait for the GPU."""
        try:
            return self._free.pop()
        except IndexError:  # another thread may have taken the last one
            if self._made >= MAX_PAIRS:
                return None
        self._made += 1
        return self._pair()

    def _pair(self) -> tuple[Any, Any]:
        return self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)

    def end(self, pair: Pair) -> None:
        """Records the second event, and notes what the pair cost."""
        start, end, cost = pair
        began = time.thread_time()
        try:
            if self._cuda.is_current_stream_capturing():
                self._free.append((start, end))
                return
            end.record()
        except Exception as error:  # noqa: BLE001 - as above
            self._end(error)
            return
        self._waiting.append((start, end))
        self._costs.append(cost + time.thread_time() - began)
        self._gap = min(LONGEST_GAP_S, max(LEAST_GAP_S, min(self._costs) / SHARE))

    def _end(self, error: Exception) -> None:
        self.off = f"{type(error).__name__}: {error}"[:200]

    def drop(self, pair: Pair) -> None:
        """The call raised: its pair is free again."""
        self._free.append((pair[0], pair[1]))

    def read(self) -> None:
        """Takes the times of the pairs that the GPU has finished, and sees how often calls come. For one thread, about once a second."""
        while self._waiting and self._waiting[0][1].query():
            start, end = self._waiting.popleft()
            self.line.gpu.append(start.elapsed_time(end) / 1e3)
            self._free.append((start, end))
        now = time.perf_counter()
        elapsed = now - self._read
        if elapsed < LEAST_READ_S:
            return
        self._rate, self._calls, self._samples, self._read = self._calls / elapsed, 0, 0, now
        self._countdown = min(self._countdown, int(1.5 * self._rate * self._gap))
