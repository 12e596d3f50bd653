"""Whether a call ran compiled: torch's answer to every guard lookup, counted on the thread whose call asked."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source

Hook = Callable[[bool], bool]
_COLLECTIVES = "set_enable_guard_collectives"
SETTLING_SECONDS = 20.0
PERIOD_SECONDS, COUNTING_SECONDS = 10.0, 1.0
"""For so long after a compilation lookups are counted all the time, then one second in ten. The hook costs little, but an
interrupt that Python happens to raise at its first instruction, which no handler covers, aborts the process: the less the hook is
there, the less likely that is."""


class CompiledCalls(Source):
    """Holds the one slot torch has for a guard hook, passes every answer through whoever held it before, and steps aside for
    guard collectives: there a rank whose hook is missing leaves the others waiting."""

    name = "compiled_calls"
    module = "torch._dynamo.eval_frame"

    def __init__(self) -> None:
        self._slot: Callable[[Hook | None], Hook | None] | None = None
        self._hook: Hook | None = None
        self._previous: Hook | None = None
        self._switch: tuple[ModuleType, Any, Any] | None = None
        self._epoch, self._changed = 0, 0.0
        self._aside = False
        self._answer: Answer = ("no", "not installed")

    def install(self, recorder: Recorder) -> Answer:
        if self._slot is not None:
            return self._answer
        self._recorder = recorder
        eval_frame = getattr(sys.modules.get("torch._C._dynamo"), "eval_frame", None)
        self._slot = getattr(eval_frame, "set_guard_complete_hook", None)
        if self._slot is None:
            self._answer = ("no", "this torch has no hook for the answer of a guard lookup")
            return self._answer
        self._watch_collectives()
        self._changed = time.monotonic()
        self._take_slot()
        return self._answer

    def poll(self, recorder: Recorder) -> Answer | None:
        """Counts for a while, then lets torch run without the hook."""
        if self._slot is None or self._aside:
            return self._answer
        now = time.monotonic()
        if recorder.epoch != self._epoch:
            self._epoch, self._changed = recorder.epoch, now
        since = now - self._changed
        if since < SETTLING_SECONDS or since % PERIOD_SECONDS < COUNTING_SECONDS:
            if self._hook is None:
                self._take_slot()
        elif self._hook is not None:
            self._leave_slot()
        return self._answer

    def uninstall(self) -> None:
        if self._switch is not None:
            compiler, ours, original = self._switch
            if getattr(compiler, _COLLECTIVES, None) is ours:
                setattr(compiler, _COLLECTIVES, original)
            self._switch = None
        self._leave_slot()
        self._slot = None

    def _take_slot(self) -> None:
        assert self._slot is not None
        previous = self._slot(None)
        if previous is not None and previous is getattr(sys.modules[self.module], "guard_collectives_hook", None):
            self._slot(previous)
            self._step_aside()
            return
        self._aside, self._answer = False, ("yes", "")
        self._previous, self._hook = previous, guard_hook(self._recorder, previous)
        self._slot(self._hook)
        self._recorder.count_lookups(True)

    def _step_aside(self) -> None:
        self._aside, self._answer = True, ("no", "guard collectives are on and own torch's hook")

    def _leave_slot(self) -> None:
        if self._slot is None or self._hook is None:
            return
        self._recorder.count_lookups(False)
        present = self._slot(self._previous)
        if present is not self._hook:
            self._slot(present)  # someone took the slot after us: it stays theirs
        self._hook = self._previous = None

    def _watch_collectives(self) -> None:
        compiler = sys.modules.get("torch.compiler")
        original = getattr(compiler, _COLLECTIVES, None)
        if compiler is None or original is None:
            return

        @functools.wraps(original)
        def switch(enabled: bool) -> Any:
            self._leave_slot()
            self._step_aside()
            result = original(enabled)
            if not enabled and self._slot is not None:
                self._take_slot()
            return result

        setattr(compiler, _COLLECTIVES, switch)
        self._switch = (compiler, switch, original)


def guard_hook(recorder: Recorder, previous: Hook | None) -> Hook:
    """The hook torch calls with each lookup's answer. Torch aborts the process on any exception that leaves it."""

    def hook(hit: bool) -> bool:
        if previous is not None:
            hit = previous(hit)
        try:
            try:
                call = recorder.current.call
            except AttributeError:
                call = recorder.call()
            if hit:
                call.hits += 1
            else:
                call.misses += 1
        except Exception as error:  # noqa: BLE001 - counted, and the call goes on
            recorder.internal_error(error)
        return hit

    return hook
