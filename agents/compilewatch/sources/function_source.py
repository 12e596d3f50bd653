"""Function source: base class of sources that observe the calls of one torch function."""

from __future__ import annotations

from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import TorchName
from compilewatch.sources import Capability, Source
from compilewatch.sources.function_patch import FunctionPatch


class FunctionSource(Source):
    """Calls `hear` with the arguments of each call of `function`, before torch's code runs."""

    function: TorchName
    missing_state: str = "partly"
    """Capability value for a torch version without this function."""

    def __init__(self) -> None:
        self._patch: FunctionPatch | None = None

    def install(self, recorder: Recorder) -> Capability:
        if self._patch is None:
            self._recorder = recorder
            self._patch = FunctionPatch(self.function, self.on_call, recorder)
            self._patch.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        problem = "not installed" if self._patch is None else self._patch.problem
        return (
            (self.missing_state, f"no {self.function.lost_capability}: {problem}")
            if problem
            else ("yes", "")
        )

    def uninstall(self) -> None:
        if self._patch is not None:
            self._patch.unbind()
            self._patch = None

    def on_call(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError
