"""Deferred GPU reads: a FIFO queue of callbacks that run after the GPU has passed a CUDA event.

Algorithm: an event-driven completion queue. A caller queues its GPU work on its own stream, records
an event behind that work, and adds the event with a callback. The agent's thread polls the oldest
event about once a second with `query`, which never blocks, and runs the callback on a stream of its
own. Reading the result there does not wait for the job's later work.

Invariants:
- No caller ever waits for the GPU; only the agent's thread reads.
- `add` runs on callers' threads and `read` on the agent's thread alone. `deque.append` and
  `popleft` are atomic under the GIL and in free-threaded Python, so there is no lock. Two callers
  may both see the last free place, so the queue can exceed `MAX_WAITING` by the number of threads.
- While the current stream is captured into a CUDA graph, `has_room` is false: the capture would
  record the queued work too. The agent's thread first relaxes its own capture mode (`gpu_time`).
- A callback keeps its tensors alive until the agent's thread has run it; `MAX_WAITING` bounds this
  memory.

Cost: one event per entry and one query per poll.
Source: the CUDA runtime API on `cudaEventQuery`. PyTorch's caching allocator frees blocks that
another stream used in the same way (`process_events`)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from compilewatch.errors import ComparisonError

MAX_WAITING = 8
"""Maximum number of waiting entries; calls sampled while the queue is full are not checked."""
NOT_STARTED = "the agent does not read from the GPU yet"


class DeferredReads:
    """The queue of callbacks, in the order of `add`."""

    def __init__(self) -> None:
        self._blocked_by = NOT_STARTED
        self._waiting: deque[tuple[Any, Any, Callable[[], None]]] = deque()
        self._streams: dict[Any, Any] = {}

    def start(self) -> None:
        """Starts the queue: the agent's thread can read without disturbing a capture."""
        self._blocked_by = ""

    def stop(self, why: str = NOT_STARTED) -> None:
        """Stops the queue and drops the waiting entries."""
        self._blocked_by = why
        self._waiting.clear()
        self._streams = {}

    def has_room(self, torch: Any) -> bool:
        """True if an entry can be added now; false while this thread captures a graph.

        Raises ComparisonError if the GPU can never be read."""
        if self._blocked_by not in ("", NOT_STARTED):
            raise ComparisonError(
                f"the GPU cannot be read without waiting for it: {self._blocked_by}"
            )
        return (
            not self._blocked_by
            and len(self._waiting) < MAX_WAITING
            and not torch.cuda.is_current_stream_capturing()
        )

    def add(self, torch: Any, device: Any, then: Callable[[], None]) -> None:
        """Calls `then` on the agent's thread after the GPU has finished the work queued so far."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(device))
        self._waiting.append((event, device, then))

    def run_ready(self, torch_cuda: Any) -> None:
        """Runs the callbacks whose events have passed; only the agent's thread calls it."""
        while self._waiting and self._waiting[0][0].query():
            _, device, then = self._waiting.popleft()
            if device not in self._streams:
                self._streams[device] = torch_cuda.Stream(device)
            with torch_cuda.stream(self._streams[device]):
                then()


DEFERRED_READS = DeferredReads()


class CallTimer:
    """Duration of a call: host time immediately, GPU time after the GPU has finished."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._events = (
            ()
            if device is None
            else (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        )
        self._stream = None if device is None else torch.cuda.current_stream(device)
        self._start = time.perf_counter()
        self.host_seconds = 0.0
        if self._events:
            self._events[0].record(self._stream)

    def stop(self) -> None:
        """Ends the call, or the submission of its GPU work."""
        self.host_seconds = time.perf_counter() - self._start
        if self._events:
            self._events[1].record(self._stream)

    @property
    def gpu_seconds(self) -> float | None:
        """GPU seconds between both events; waits for the second event."""
        if not self._events:
            return None
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3

    @property
    def seconds(self) -> float:
        """GPU seconds if the call ran on a GPU, else host seconds."""
        on_gpu = self.gpu_seconds
        return self.host_seconds if on_gpu is None else on_gpu


def gpu_of(tensors: Iterable[Any], what: str) -> Any:
    """The GPU of the tensors, or None for the CPU; raises ComparisonError for other devices.

    `what` names the tensors in the error, with its verb."""
    found = {one.device for one in tensors if one.device.type != "cpu"}
    for device in found:
        if device.type != "cuda":
            raise ComparisonError(f"its {what} on {device.type}: reading would wait for it")
    if len(found) > 1:
        raise ComparisonError(f"its {what} on several GPUs")
    return next(iter(found), None)
