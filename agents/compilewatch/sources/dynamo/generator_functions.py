"""Generator functions that are handed to `torch.compile`: torch runs them eager without a message."""

from __future__ import annotations

import inspect
from typing import Any

from compilewatch.runtime.torch_internals import WRAP_COMPILED
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.function_source import FunctionSource

_GENERATES = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_COMPILES = "OptimizeContext"
_OF_MODULES = ("__call__", "_call_impl", "_wrapped_call_impl")


class Generators(FunctionSource):
    """Looks at each function and module that torch makes a compiled one of."""

    name = "generators"
    module = "torch._dynamo.eval_frame"
    function = WRAP_COMPILED
    without = "no"

    def hear(self, context: Any, wanted: Any, *_: Any, **__: Any) -> None:
        code = _code_of(wanted)
        if type(context).__name__ == _COMPILES and getattr(code, "co_flags", 0) & _GENERATES:
            frame = frame_of(None, {"code": code})
            self._recorder.finding(
                "generator_not_compiled",
                f"{frame.name} is a generator function, and those run eager",
                frame.where,
            )


def _code_of(wanted: Any) -> Any:
    """The code of a function or a method, or of the forward of a module."""
    owner = getattr(wanted, "__self__", None)
    if owner is not None and getattr(wanted, "__name__", "") in _OF_MODULES:
        wanted = owner
    function = wanted if hasattr(wanted, "__code__") else getattr(type(wanted), "forward", None)
    return getattr(function, "__code__", None)
