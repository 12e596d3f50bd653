"""Compile requests: calls of `torch.compile` and of a module's `.compile()`."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import OPTIMIZE
from compilewatch.sources.dynamo.user_frames import find_caller
from compilewatch.sources.function_source import FunctionSource


class CompileRequests(FunctionSource):
    """Records each callable that torch wraps for compilation, with the place of the call."""

    name = "compile_requests"
    module = "torch._dynamo.eval_frame"
    function = OPTIMIZE

    def on_call(self, _: Any, target: Any, *__: Any, **___: Any) -> None:
        self._recorder.compile_requests.add(target, str(find_caller() or ""))
