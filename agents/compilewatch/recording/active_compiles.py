"""Active compilations: which compilations run now, by thread, and the longest earlier time of
each frame."""

from __future__ import annotations

import threading
import time

from compilewatch.wire.messages import Compile, Gauges

MAX_FRAMES = 1024
MAX_WAIT_END_TIMES = 1000


class ActiveCompiles:
    """Stacks of running compilations by thread. One frame's compilation can begin inside
    another's."""

    def __init__(self) -> None:
        self._stacks: dict[int, list[tuple[str, float, int]]] = {}
        self._longest_seconds: dict[str, float] = {}
        self.wait_end_times: list[float] = []
        """End times, in Unix seconds, of the first calls that compiled or waited for a
        compilation."""
        self._last_end_step = self._last_start_step = 0
        """Step of the last end; latest start step among compilations that have ended."""

    def begin(self, frame: str, step: int) -> None:
        """Records that a compilation starts on this thread at `step`. A call of `end` must
        follow."""
        self._stacks.setdefault(threading.get_ident(), []).append((frame, time.monotonic(), step))

    def end(self, step: int) -> None:
        """Records that the newest compilation of this thread has ended."""
        self.record_end(step)
        thread = threading.get_ident()
        stack = self._stacks.get(thread)
        if stack:
            self._last_start_step = max(self._last_start_step, stack.pop()[2])
            if not stack:
                self._stacks.pop(thread, None)

    def record_end(self, step: int) -> None:
        """Records the end of a compilation. Its start may be unrecorded."""
        self._last_end_step = step

    def has_waited(self, since: int, served: bool) -> bool:
        """True if a call that compiled nothing waited for a compilation on another thread.

        The call began at step `since`. The call waited if an ended compilation lies entirely
        inside the call. The call also waited if a compilation ended during the call and compiled
        code did not serve the call."""
        return self._last_end_step > since and (self._last_start_step > since or not served)

    def record_wait(self) -> None:
        """Records the end time of a call that compiled or waited for a compilation."""
        if len(self.wait_end_times) < MAX_WAIT_END_TIMES:
            self.wait_end_times.append(time.time())

    def record_duration(self, compile: Compile) -> None:
        """Records the duration of a finished compilation."""
        seconds = compile.seconds.get("total", 0.0)
        if compile.outcome == "ok" and (
            compile.frame in self._longest_seconds or len(self._longest_seconds) < MAX_FRAMES
        ):
            self._longest_seconds[compile.frame] = max(
                seconds, self._longest_seconds.get(compile.frame, 0.0)
            )

    def fill_gauges(self, gauges: Gauges) -> None:
        """Writes the oldest running compilation, its age and the longest earlier time of its
        frame."""
        oldest = min(
            (stack[0] for stack in list(self._stacks.values()) if stack),
            key=lambda entry: entry[1],
            default=None,
        )
        gauges.compiling_for = 0.0
        if oldest is not None:
            frame, since, _ = oldest
            gauges.compiling_for = time.monotonic() - since
            gauges.compiling_frame = frame or None
            gauges.compiling_usual = self._longest_seconds.get(frame)

    def frames(self) -> list[str]:
        """Frames that compile now, one per thread."""
        return [stack[-1][0] for stack in list(self._stacks.values()) if stack]
