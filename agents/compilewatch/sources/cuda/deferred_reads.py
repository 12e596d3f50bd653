"""What was asked of a GPU beside the job's own work: no caller waits for it, the agent's thread reads it once the GPU has come so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from compilewatch.errors import NotCompared

MOST = 8
"""So many things wait at a time; what is drawn while the GPU is further behind is not looked at."""
WAITING = "the agent does not read from the GPU yet"


class Later:
    """What waits, in the order in which it was asked."""

    def __init__(self) -> None:
        self._never = WAITING
        self._waiting: deque[tuple[Any, Any, Callable[[], None]]] = deque()
        self._streams: dict[Any, Any] = {}

    def begin(self) -> None:
        """The agent's thread can read without disturbing a capture, and will."""
        self._never = ""

    def end(self, why: str = WAITING) -> None:
        """It does not, or not any more; what waits is let go."""
        self._never = why
        self._waiting.clear()
        self._streams = {}

    def has_room(self, torch: Any) -> bool:
        """Whether something can be asked now: not while this thread captures a graph, which would hold it too. Raises NotCompared where
        nothing ever can."""
        if self._never not in ("", WAITING):
            raise NotCompared(f"the GPU cannot be read without waiting for it: {self._never}")
        return (
            not self._never
            and len(self._waiting) < MOST
            and not torch.cuda.is_current_stream_capturing()
        )

    def add(self, torch: Any, device: Any, then: Callable[[], None]) -> None:
        """`then` is called on the agent's thread, on a stream of its own, after the GPU has done all that was asked of it so far."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(device))
        self._waiting.append((event, device, then))

    def read(self, torch_cuda: Any) -> None:
        """What the GPU has finished; for the agent's thread alone."""
        while self._waiting and self._waiting[0][0].query():
            _, device, then = self._waiting.popleft()
            if device not in self._streams:
                self._streams[device] = torch_cuda.Stream(device)
            with torch_cuda.stream(self._streams[device]):
                then()


LATER = Later()


class Timed:
    """How long something takes: on the host at once, on its GPU once that has come so far."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._events = (
            ()
            if device is None
            else (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        )
        self._stream = None if device is None else torch.cuda.current_stream(device)
        self._began = time.perf_counter()
        self.host = 0.0
        if self._events:
            self._events[0].record(self._stream)

    def stop(self) -> None:
        """It is over, or everything of it was asked of the GPU."""
        self.host = time.perf_counter() - self._began
        if self._events:
            self._events[1].record(self._stream)

    @property
    def on_gpu(self) -> float | None:
        """Seconds between the two moments there; waits for the second one."""
        if not self._events:
            return None
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3

    @property
    def seconds(self) -> float:
        """Where it ran."""
        on_gpu = self.on_gpu
        return self.host if on_gpu is None else on_gpu


def one_gpu(tensors: Iterable[Any], what: str) -> Any:
    """The GPU that they are on, None where all are on the CPU; raises NotCompared for anything else. `what` they are, with its verb."""
    found = {one.device for one in tensors if one.device.type != "cpu"}
    for device in found:
        if device.type != "cuda":
            raise NotCompared(f"its {what} on {device.type}: looking at it would wait for that")
    if len(found) > 1:
        raise NotCompared(f"its {what} on several GPUs")
    return next(iter(found), None)
