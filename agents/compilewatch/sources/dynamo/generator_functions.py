"""Generator check: finds generator functions passed to `torch.compile`, which run eager."""

from __future__ import annotations

import inspect
from typing import Any

from compilewatch.runtime.torch_internals import WRAP_COMPILED
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.function_source import FunctionSource

_GENERATOR_FLAGS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_COMPILE_CONTEXT = "OptimizeContext"
_MODULE_CALL_NAMES = ("__call__", "_call_impl", "_wrapped_call_impl")


class GeneratorFunctions(FunctionSource):
    """Checks each function and module that torch wraps for compilation."""

    name = "generators"
    module = "torch._dynamo.eval_frame"
    function = WRAP_COMPILED
    missing_state = "no"

    def on_call(self, context: Any, target: Any, *_: Any, **__: Any) -> None:
        code = _code_of(target)
        if (
            type(context).__name__ == _COMPILE_CONTEXT
            and getattr(code, "co_flags", 0) & _GENERATOR_FLAGS
        ):
            frame = frame_of(None, {"code": code})
            self._recorder.record_finding(
                "generator_not_compiled",
                f"{frame.name} is a generator function; torch runs generator functions eager",
                frame.where,
            )


def _code_of(target: Any) -> Any:
    """Return the code of a function or method, or of a module's forward."""
    owner = getattr(target, "__self__", None)
    if owner is not None and getattr(target, "__name__", "") in _MODULE_CALL_NAMES:
        target = owner
    function = target if hasattr(target, "__code__") else getattr(type(target), "forward", None)
    return getattr(function, "__code__", None)
