"""What the job asks torch to compile, by `torch.compile` or a module's `.compile()`."""

from __future__ import annotations

from typing import Any

from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.bindings import Binding
from compilewatch.sources.places import calling_place
from compilewatch.sources.torch_names import OPTIMIZE


class CompileRequests(Source):
    """Hears what torch puts its compiler in front of."""

    name = "compile_requests"
    module = "torch._dynamo.eval_frame"

    def __init__(self) -> None:
        self._binding: Binding | None = None

    def install(self, recorder: Recorder) -> Answer:
        if self._binding is None:
            self._recorder = recorder
            self._binding = Binding(OPTIMIZE, self._on_request, recorder)
            self._binding.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        problem = "not installed" if self._binding is None else self._binding.problem
        return ("partly", f"no {OPTIMIZE.costs}: {problem}") if problem else ("yes", "")

    def uninstall(self) -> None:
        if self._binding is not None:
            self._binding.unbind()
            self._binding = None

    def _on_request(self, _: Any, target: Any, *__: Any, **___: Any) -> None:
        self._recorder.asked.ask(target, str(calling_place() or ""))
