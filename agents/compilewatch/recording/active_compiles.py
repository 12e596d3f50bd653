"""Which compilations run at this moment, thread by thread, and how long those of the same frame took before."""

from __future__ import annotations

import threading
import time

from compilewatch.wire.messages import Compile, Gauges

MAX_FRAMES = 1024
MAX_WAITED = 1000


class Compiling:
    """Compilations nest: one frame's may begin inside another's."""

    def __init__(self) -> None:
        self._stacks: dict[int, list[tuple[str, float, int]]] = {}
        self._longest: dict[str, float] = {}
        self.waited_until: list[float] = []
        """When the first calls that compiled or waited for it ended, in Unix seconds."""
        self._ended_at = self._began_at = 0
        """The step in which the last one ended, and the latest step in which one began that is over."""

    def begin(self, frame: str, step: int) -> None:
        """One began in this thread; `end` must follow."""
        self._stacks.setdefault(threading.get_ident(), []).append((frame, time.monotonic(), step))

    def end(self, step: int) -> None:
        """The one that began last in this thread is over."""
        self.over(step)
        thread = threading.get_ident()
        stack = self._stacks.get(thread)
        if stack:
            self._began_at = max(self._began_at, stack.pop()[2])
            if not stack:
                self._stacks.pop(thread, None)

    def over(self, step: int) -> None:
        """One is over, whether or not its begin was heard."""
        self._ended_at = step

    def held_up(self, since: int, served: bool) -> bool:
        """Whether a call of a thread that compiled nothing waited for another thread: for one that is over, all of which it was under way
        for, or whose end it saw without being served by compiled code."""
        return self._ended_at > since and (self._began_at > since or not served)

    def waited(self) -> None:
        """A call that compiled or waited for a compilation is over."""
        if len(self.waited_until) < MAX_WAITED:
            self.waited_until.append(time.time())

    def note(self, compile: Compile) -> None:
        """How long one took that is over."""
        seconds = compile.seconds.get("total", 0.0)
        if compile.outcome == "ok" and (
            compile.frame in self._longest or len(self._longest) < MAX_FRAMES
        ):
            self._longest[compile.frame] = max(seconds, self._longest.get(compile.frame, 0.0))

    def fill(self, gauges: Gauges) -> None:
        """Says which compilation has run longest, for how long, and how long its frame took at most before."""
        oldest = min(
            (stack[0] for stack in list(self._stacks.values()) if stack),
            key=lambda begun: begun[1],
            default=None,
        )
        gauges.compiling_for = 0.0
        if oldest is not None:
            frame, since, _ = oldest
            gauges.compiling_for = time.monotonic() - since
            gauges.compiling_frame = frame or None
            gauges.compiling_usual = self._longest.get(frame)

    def frames(self) -> list[str]:
        """What is being compiled now."""
        return [stack[-1][0] for stack in list(self._stacks.values()) if stack]
