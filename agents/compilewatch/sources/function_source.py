"""Function source: base class of sources that observe the calls of one torch function."""

from __future__ import annotations

from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import TorchName
from compilewatch.sources import Answer, Source
from compilewatch.sources.function_patch import Binding


class FunctionSource(Source):
    """Calls `hear` with the arguments of each call of `function`, before torch's code runs."""

    function: TorchName
    without: str = "partly"
    """Capability value for a torch version without this function."""

    def __init__(self) -> None:
        self._patch: Binding | None = None

    def install(self, recorder: Recorder) -> Answer:
        if self._patch is None:
            self._recorder = recorder
            self._patch = Binding(self.function, self.hear, recorder)
            self._patch.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        problem = "not installed" if self._patch is None else self._patch.problem
        return (self.without, f"no {self.function.costs}: {problem}") if problem else ("yes", "")

    def uninstall(self) -> None:
        if self._patch is not None:
            self._patch.unbind()
            self._patch = None

    def hear(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError
