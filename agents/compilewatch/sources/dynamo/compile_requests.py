"""What the job asks torch to compile, by `torch.compile` or a module's `.compile()`."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import OPTIMIZE
from compilewatch.sources.dynamo.user_frames import calling_place
from compilewatch.sources.function_source import FunctionSource


class CompileRequests(FunctionSource):
    """Hears what torch puts its compiler in front of."""

    name = "compile_requests"
    module = "torch._dynamo.eval_frame"
    function = OPTIMIZE

    def hear(self, _: Any, target: Any, *__: Any, **___: Any) -> None:
        self._recorder.compile_requests.add(target, str(calling_place() or ""))
