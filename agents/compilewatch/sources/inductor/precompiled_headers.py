"""Precompiled headers: the time that the first compilation of a process spends on C++ headers.

This time is independent of the model."""

from __future__ import annotations

import time
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import EVENTS, HEADERS
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.phase_timer import HEADERS as PHASE
from compilewatch.sources.dynamo.phase_timer import clock_of
from compilewatch.sources.function_patch import FunctionPatch


class PrecompiledHeaders(Source):
    """Opens a separate phase around the header build, in the compilation that waits for it."""

    name = "precompiled_headers"
    module = "torch._inductor.codecache"

    def __init__(self) -> None:
        self._binding: FunctionPatch | None = None

    def install(self, recorder: Recorder) -> Capability:
        if self._binding is None:
            self._recorder = recorder
            self._binding = FunctionPatch(HEADERS, self._begin, recorder, after=self._end)
            self._binding.bind()
        return self._answer(self._binding)

    def poll(self, recorder: Recorder) -> Capability | None:
        return None if self._binding is None else self._answer(self._binding)

    def uninstall(self) -> None:
        if self._binding is not None:
            self._binding.unbind()
            self._binding = None

    def _begin(self, *args: Any, **kwargs: Any) -> None:
        clock = clock_of(self._recorder)
        if clock.is_running:
            clock.begin(PHASE, time.time())

    def _end(self) -> None:
        clock_of(self._recorder).end(PHASE, time.time())

    def _answer(self, binding: FunctionPatch) -> Capability:
        problem = binding.problem or EVENTS.problem()
        return ("no", problem) if problem else ("yes", "")
