"""Ahead-of-time code of AOTInductor or `aot_compile`: each call runs compiled.

A call has no guard lookup. The load of a package is a mark on the timeline, with its duration."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import CALL_AHEAD, CALL_PACKAGE, LOAD_PACKAGE, TorchName
from compilewatch.sources import Capability, Source
from compilewatch.sources.function_patch import FunctionPatch


class AotInductor(Source):
    """Patches the loader behind `torch._inductor.aoti_load_package`, and calls of its packages."""

    name = "aotinductor"
    module = "torch._inductor.package"

    def __init__(self) -> None:
        self._bound: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._calls: FunctionPatch | None = None

    def install(self, recorder: Recorder) -> Capability:
        if self._bound is not None:
            return "yes", ""
        self._calls = count_calls(CALL_PACKAGE, recorder)
        if LOAD_PACKAGE.problem():
            return "partly", f"no {LOAD_PACKAGE.lost_capability}: {LOAD_PACKAGE.problem()}"
        original, barrier = LOAD_PACKAGE.find(), FaultBarrier(recorder.record_internal_error)

        @functools.wraps(original)
        def load(*args: Any, **kwargs: Any) -> Any:
            start = time.monotonic()
            loaded = original(*args, **kwargs)
            with barrier:
                if self._bound is not None and recorder.buffers is not None:
                    recorder.record_fact(
                        "mark",
                        {
                            "name": "AOTInductor package loaded",
                            "seconds": round(time.monotonic() - start, 6),
                        },
                    )
            return loaded

        LOAD_PACKAGE.put(load)
        self._bound = (load, original)
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        """Patches the package class, which may be defined after the install of this source."""
        problems = [
            f"no {name.lost_capability}: {name.problem()}"
            for name in (LOAD_PACKAGE, CALL_PACKAGE)
            if name.problem()
        ]
        if self._calls is not None:
            self._calls.bind()
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def uninstall(self) -> None:
        if self._calls is not None:
            self._calls.unbind()
            self._calls = None
        bound, self._bound = self._bound, None
        if bound is not None and LOAD_PACKAGE.find() is bound[0]:
            LOAD_PACKAGE.put(bound[1])


class AheadOfTime(Source):
    """Counts calls of functions from `aot_compile` or `load_compiled_function`."""

    name = "aot_compile"
    module = "torch._dynamo.aot_compile"

    def __init__(self) -> None:
        self._calls: FunctionPatch | None = None

    def install(self, recorder: Recorder) -> Capability:
        if self._calls is None:
            self._calls = count_calls(CALL_AHEAD, recorder)
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        problem = "not installed" if self._calls is None else self._calls.problem
        return ("partly", f"no {CALL_AHEAD.lost_capability}: {problem}") if problem else ("yes", "")

    def uninstall(self) -> None:
        if self._calls is not None:
            self._calls.unbind()
            self._calls = None


def count_calls(name: TorchName, recorder: Recorder) -> FunctionPatch:
    """Counts each call of the name like a guard lookup that found compiled code."""

    def count_hit(*_: Any, **__: Any) -> None:
        recorder.get_thread_state().hits += 1

    binding = FunctionPatch(name, count_hit, recorder)
    binding.bind()
    return binding
