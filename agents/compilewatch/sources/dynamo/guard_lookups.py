"""Whether a call ran compiled: torch's answer to every guard lookup, counted on the thread whose call asked."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import COLLECTIVES, GUARD_HOOK, SWITCH_COLLECTIVES
from compilewatch.sources import Answer, Source
from compilewatch.sources.dynamo.duty_cycle import Turns
from compilewatch.sources.function_patch import Binding

Hook = Callable[[bool], bool]
YES: Answer = ("yes", "")
SUSPENDED_BLOCKS = (
    "blocks inside coroutines and generators are suspended with them, so theirs are unknown"
)


class CompiledCalls(Source):
    """Holds the one slot torch has for a guard hook, passes every answer through whoever held it before, and steps aside for
    guard collectives: there a rank whose hook is missing leaves the others waiting."""

    name = "compiled_calls"
    module = "torch._dynamo.eval_frame"

    def __init__(self) -> None:
        self._slot: Callable[[Hook | None], Hook | None] | None = None
        self._hook: Hook | None = None
        self._previous: Hook | None = None
        self._bound: list[Binding] = []
        self._switching_on = False
        self._epoch, self._kinds, self._turns = 0, 0, Turns(0.0)
        self._lookups, self._busy = itertools.count(), 0.0
        self._aside = False
        self._answer: Answer = ("no", "not installed")

    def install(self, recorder: Recorder) -> Answer:
        if self._slot is not None:
            return self._answer
        self._recorder = recorder
        if GUARD_HOOK.find() is None or GUARD_HOOK.problem():
            self._answer = ("no", GUARD_HOOK.problem() or f"this torch has no {GUARD_HOOK.short}")
            return self._answer
        self._slot = GUARD_HOOK.find()
        self._collectives = Binding(COLLECTIVES, self._collectives_run, recorder)
        self._bound = [
            Binding(SWITCH_COLLECTIVES, self._before_switch, recorder, after=self._after_switch),
            self._collectives,
        ]
        for binding in self._bound:
            binding.bind()
        self._turns = Turns(time.monotonic())
        self._take_slot()
        return self._answer

    def poll(self, recorder: Recorder) -> Answer | None:
        """Counts for a while, then lets torch run without the hook. It costs little, but an interrupt that Python happens to raise at its
        first instruction, which no handler covers, aborts the process: the less the hook is there, the less likely that is."""
        deaf = next(
            (binding.problem for binding in self._bound if binding.bound and binding.problem), ""
        )
        if deaf:
            self._answer = (
                "no" if self._aside else "partly",
                f"guard collectives may take torch's hook unheard: {deaf}",
            )
        if self._slot is None or self._aside:
            return self._answer
        if self._answer == YES:
            self._answer = self._seen()
        now = time.monotonic()
        kinds = len(recorder.lines or ())
        if (
            recorder.epoch != self._epoch
            or recorder.compiling.frames()
            or kinds != self._kinds
            or not kinds
        ):
            # Also while it lasts: the calls right after a long compilation are those that tell what came of it. The first calls of a
            # region, however late they come, tell what runs it.
            self._epoch, self._kinds = recorder.epoch, kinds
            self._turns.compiled(now)
        if self._hook is not None:
            # Reading a counter counts one more.
            self._turns.looked_up(next(self._lookups), recorder.sampler.busy - self._busy)
        if self._turns.counts(now):
            if self._hook is None:
                self._take_slot()
        elif self._hook is not None:
            self._leave_slot()
        return self._answer

    def uninstall(self) -> None:
        for binding in self._bound:
            binding.unbind()
        self._bound = []
        self._leave_slot()
        self._slot = None

    def _take_slot(self) -> None:
        try:
            previous = self._set(None)
            if self._collectives.leads_to(previous):
                self._set(previous)
                self._step_aside()
                return
            self._lookups, self._busy = itertools.count(), self._recorder.sampler.busy
            hook = guard_hook(self._recorder, previous, self._lookups)
            self._set(hook)
        except Exception as error:  # noqa: BLE001 - torch's slot is another than we know: then it is left alone
            self._slot = None
            self._answer = (
                "no",
                f"{GUARD_HOOK.short} is called in an unknown way ({type(error).__name__}: {error})"[
                    :200
                ],
            )
            return
        self._aside, self._answer = False, self._seen()
        self._previous, self._hook = previous, hook
        self._recorder.count_lookups(True)

    def _seen(self) -> Answer:
        return ("partly", SUSPENDED_BLOCKS) if self._recorder.suspended_blocks else YES

    def _set(self, hook: Hook | None) -> Hook | None:
        assert self._slot is not None
        return self._slot(hook)

    def _step_aside(self) -> None:
        self._aside, self._answer = True, ("no", "guard collectives are on and own torch's hook")

    def _leave_slot(self) -> None:
        if self._slot is None or self._hook is None:
            return
        self._recorder.count_lookups(False)
        present = self._set(self._previous)
        if present is not self._hook:
            self._set(present)  # someone took the slot after us: it stays theirs
        self._hook = self._previous = None

    def _before_switch(self, enabled: bool, *_: Any, **__: Any) -> None:
        self._switching_on = bool(enabled)
        self._leave_slot()
        self._step_aside()

    def _collectives_run(self, *_: Any, **__: Any) -> None:
        """They were switched on by a way that we do not hear, and hold the slot."""
        if self._hook is not None:
            self._recorder.count_lookups(False)
            self._hook = self._previous = None
        if not self._aside:
            self._step_aside()

    def _after_switch(self) -> None:
        if not self._switching_on and self._slot is not None and self._hook is None:
            self._take_slot()


def guard_hook(recorder: Recorder, previous: Hook | None, lookups: Iterator[int]) -> Hook:
    """The hook torch calls with each lookup's answer; `lookups` counts them in all threads.
    Torch aborts the process on any exception that leaves it."""

    def hook(hit: bool) -> bool:
        if previous is not None:
            hit = previous(hit)
        try:
            try:
                call = recorder.current.call
            except AttributeError:
                call = recorder.call()
            next(lookups)
            if hit:
                call.hits += 1
            else:
                call.misses += 1
        except Exception as error:  # noqa: BLE001 - counted, and the call goes on
            recorder.internal_error(error)
        return hit

    return hook
