"""GPU time: pairs of CUDA events around sampled calls, read later without synchronisation.

Algorithm: sampling with a cost budget (an adaptive rate). Each region has a gap in seconds between
samples; the gap is the measured cost of a pair divided by `COST_SHARE`, within `MIN_GAP_S` and
`MAX_GAP_S`. The gap is counted in calls, by the call rate of the last second, because the time
between two calls is meaningless where threads call in bursts. The count is randomised, so that
sampling does not synchronise with the job. The minimum of the last `COST_SAMPLES` costs is used:
contention only adds to a cost.

Invariants:
- `begin`, `end` and `drop` run on the job's threads, `read` on the agent's thread. There is no
  lock: `deque.append`, `deque.popleft`, `list.pop` and `list.append` are atomic. The counters may
  lose an increment; that changes the rate slightly and nothing else.
- Nothing waits for the GPU. `read` calls `query` on the oldest pair and stops at the first pending
  one.
- Nothing is recorded while the current stream is captured into a CUDA graph. The agent's
  thread first sets its capture mode to relaxed: an event query in another mode can break a capture.
- A full pool skips the sample and counts the skip. Only a CUDA error ends a probe.

Cost: at most `COST_SHARE` of a region's time; up to 64 event pairs a region.
Source: CUDA runtime API, events and `cudaThreadExchangeStreamCaptureMode`."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from compilewatch.recording.call_sampling import draw_uniform
from compilewatch.recording.recorder import Recorder
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.sources import Capability, Source
from compilewatch.sources.cuda.deferred_reads import DEFERRED_READS

COST_SHARE = 0.0015
"""Maximum overhead of sampling as a share of a region's time.

Watching may cost one hundredth in all, mostly for timing calls. A pair of events costs up to 180 us
of a step on an H100, which leaves 80 samples in a reporting window of 10 s."""
MIN_GAP_S = 1 / 8
"""Minimum gap between two samples of one region: 80 samples in a reporting window of 10 s.

For a CUDA graph of 70 us each sample delays the GPU by up to 170 us; the thread's clock shows only
a part of this delay."""
MAX_GAP_S = 10.0
MAX_BURST = 1.5
"""Factor by which the samples of one second may exceed their share, after a burst of calls."""
MIN_READ_S = 0.5
"""Minimum time between two estimates of the call rate; a shorter time is too noisy."""
MAX_PAIRS = 64
COST_SAMPLES = 32
"""Number of pairs whose minimum cost is the cost of a pair, in CPU seconds of the thread.

Wall time would include other threads' work where threads contend for the interpreter. Where threads
contend for the driver, a thread spins, as its next launch would have done. With 4 and 8 threads
that run 50 ms ahead on an H200, two of three pairs took 0.8 and 1.6 ms, the third 0.2 ms. With the
median as the cost, a reporting window had only 20 and 31 samples."""
RELAXED_CAPTURE_MODE = 2
NOT_STARTED: Capability = ("no", "the job has not started CUDA")

Pair = tuple[Any, Any, float]
"""Start event, end event, and the thread's CPU seconds for recording the start."""


class GpuTime(Source):
    """Samples GPU time after the job itself has started CUDA.

    Querying an event while a thread captures a graph can break the capture. Therefore the agent's
    thread first relaxes its own capture mode; if that fails, there is no GPU time."""

    name = "gpu_time"
    module = "torch.cuda"

    def __init__(self) -> None:
        self._probes: list[EventProbe] = []
        self._relaxed_thread: int | None = None
        self._answer: Capability = NOT_STARTED

    def install(self, recorder: Recorder) -> Capability:
        DEFERRED_READS.stop()
        self._cuda = sys.modules["torch.cuda"]
        if not all(
            hasattr(self._cuda, name)
            for name in ("Event", "is_initialized", "is_current_stream_capturing")
        ):
            self._answer = ("no", "this torch has no CUDA events")
            DEFERRED_READS.stop(self._answer[1])
        return self._answer

    def poll(self, recorder: Recorder) -> Capability | None:
        """Starts once CUDA has started, then reads the pairs that the GPU has finished."""
        if self._answer is NOT_STARTED and self._cuda.is_initialized():
            self._begin(recorder)
            return self._answer
        if self._answer[0] == "no":
            return None
        before = self._answer
        try:
            self._relax()
            for probe in self._probes:
                probe.read()
            DEFERRED_READS.run_ready(self._cuda)
        except Exception as error:
            self._stop(recorder, f"{type(error).__name__}: {error}"[:200])
            raise
        self._answer = self._capability()
        return None if self._answer == before else self._answer

    def _capability(self) -> Capability:
        """Capability of the probes: CUDA errors first, then skipped samples."""
        errors = [
            f"{probe.line.region.name}: {probe.error}" for probe in self._probes if probe.error
        ]
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
            DEFERRED_READS.stop(self._answer[1])
            return
        self._answer = ("yes", "")
        DEFERRED_READS.start()
        recorder.set_probe(self._probe_for)

    def _stop(self, recorder: Recorder, why: str) -> None:
        self._answer = ("no", why)
        DEFERRED_READS.stop(why)
        recorder.set_probe(None)
        self._probes = []

    def _probe_for(self, line: SeriesBuffer) -> EventProbe:
        probe = EventProbe(self._cuda, line)
        self._probes.append(probe)
        return probe

    def _relax(self) -> None:
        """Relaxes the capture mode, once per reading thread; a new reporter has a new thread."""
        if self._relaxed_thread == threading.get_ident():
            return
        mode = ctypes.c_int(RELAXED_CAPTURE_MODE)
        status = _cuda_runtime().cudaThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        if status != 0:
            raise OSError(f"cudaThreadExchangeStreamCaptureMode returned {status}")
        self._relaxed_thread = threading.get_ident()

    def uninstall(self) -> None:
        self._probes = []
        DEFERRED_READS.stop()


def _cuda_runtime() -> ctypes.CDLL:
    """The CUDA runtime that this process has loaded; never loads another one."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rpartition(" ")[2]
        if "libcudart" in path and ".so" in path:
            return ctypes.CDLL(path)
    raise OSError("the CUDA runtime is not loaded as a shared library")


class EventProbe:
    """The sampled calls of one buffer; the module's header describes the sampling."""

    def __init__(self, cuda: Any, line: SeriesBuffer) -> None:
        self.error = ""
        """The CUDA error that ended the probe; empty if none."""
        self.skipped = 0
        """Samples that were due while all pairs waited for the GPU."""
        self._cuda = cuda
        self.line = line
        self._countdown = 0
        """Calls until the next sample."""
        self._calls = 0
        """Calls since the last reading; concurrent threads may lose an increment."""
        self._rate = 0.0
        """Calls per second at the last reading; at 0 the gap is measured with the clock."""
        self._samples = 0
        """Samples since the last reading, about a second ago."""
        self._last_sample_s = -math.inf
        self._read = time.perf_counter()
        self._costs: deque[float] = deque(maxlen=COST_SAMPLES)
        self._gap = MIN_GAP_S
        self._free: list[tuple[Any, Any]] = [self._new_pair() for _ in range(4)]
        self._pool_size = len(self._free)
        self._waiting: deque[tuple[Any, Any]] = deque()

    def begin(self) -> Pair | None:
        """Records the first event of a sampled call; None for a call that is not sampled."""
        self._calls += 1
        self._countdown -= 1
        if self._countdown > 0 or self.error:
            return None
        now = time.perf_counter()
        if (
            not self._rate and now - self._last_sample_s < self._gap
        ) or self._samples * self._gap > MAX_BURST * max(1.0, now - self._read):
            return None
        start = time.thread_time()
        try:
            if self._cuda.is_current_stream_capturing():
                return None
            self._last_sample_s = now
            self._samples += 1
            # Random, so that sampling does not synchronise with the job; the mean gap is `_gap`.
            self._countdown = int(self._rate * self._gap * (0.5 + draw_uniform()) + draw_uniform())
            pair = self._take_pair()
            if pair is None:
                self.skipped += 1
                return None
            pair[0].record()
        except Exception as error:  # noqa: BLE001 - inside a call of the job; `poll` reports it
            self._stop_probe(error)
            return None
        return *pair, time.thread_time() - start

    def _take_pair(self) -> tuple[Any, Any] | None:
        """Takes a pair from the pool; None if all pairs wait for the GPU."""
        try:
            return self._free.pop()
        except IndexError:  # another thread may have taken the last one
            if self._pool_size >= MAX_PAIRS:
                return None
        self._pool_size += 1
        return self._new_pair()

    def _new_pair(self) -> tuple[Any, Any]:
        return self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)

    def end(self, pair: Pair) -> None:
        """Records the second event and the cost of the pair."""
        first, second, cost = pair
        start = time.thread_time()
        try:
            if self._cuda.is_current_stream_capturing():
                self._free.append((first, second))
                return
            second.record()
        except Exception as error:  # noqa: BLE001 - as above
            self._stop_probe(error)
            return
        self._waiting.append((first, second))
        self._costs.append(cost + time.thread_time() - start)
        self._gap = min(MAX_GAP_S, max(MIN_GAP_S, min(self._costs) / COST_SHARE))

    def _stop_probe(self, error: Exception) -> None:
        self.error = f"{type(error).__name__}: {error}"[:200]

    def drop(self, pair: Pair) -> None:
        """Returns the pair of a call that raised."""
        self._free.append((pair[0], pair[1]))

    def read(self) -> None:
        """Reads finished pairs and estimates the call rate; one thread, about once a second."""
        while self._waiting and self._waiting[0][1].query():
            start, end = self._waiting.popleft()
            self.line.gpu.append(start.elapsed_time(end) / 1e3)
            self._free.append((start, end))
        now = time.perf_counter()
        elapsed = now - self._read
        if elapsed < MIN_READ_S:
            return
        self._rate, self._calls, self._samples, self._read = self._calls / elapsed, 0, 0, now
        self._countdown = min(self._countdown, int(1.5 * self._rate * self._gap))
