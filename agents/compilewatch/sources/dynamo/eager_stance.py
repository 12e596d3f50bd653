"""Eager requests: torch's stance and the settings that make the whole process run eager."""

from __future__ import annotations

import os
from typing import Any

from compilewatch.instrument.kill_switch import KILL_SWITCH
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import SET_STANCE, STANCE, SWITCHED_OFF, problems_of
from compilewatch.sources import Capability, Source
from compilewatch.sources.function_patch import FunctionPatch

_VARIABLE = "TORCHDYNAMO_DISABLE"
"""Environment variable that torch reads at each call of `torch.compile`. Torch copies the other
variable, `TORCH_COMPILE_DISABLE`, into a setting."""


class EagerStance(Source):
    """Observes each change of the stance, and reads all settings about once a second."""

    name = "eager_switches"
    module = "torch._dynamo.decorators"

    def __init__(self) -> None:
        self._patch: FunctionPatch | None = None
        self._reported: tuple[str, bool] = ("", False)

    def install(self, recorder: Recorder) -> Capability:
        if self._patch is None:
            self._recorder = recorder
            self._patch = FunctionPatch(SET_STANCE, _ignore_call, recorder, after=self._update)
            self._patch.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        if self._patch is None:
            return "no", "not installed"
        self._update()
        problems = problems_of(STANCE, SWITCHED_OFF)
        if self._patch.problem:
            problems.append(f"no {SET_STANCE.lost_capability}: {self._patch.problem}")
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def uninstall(self) -> None:
        if self._patch is not None:
            self._patch.unbind()
            self._patch = None

    def _update(self) -> None:
        found = find_eager_request()
        if found != self._reported:
            self._reported = found
            self._recorder.set_process_eager(*found)


def find_eager_request() -> tuple[str, bool]:
    """Return the cause of an eager request, or an empty string. The second value is True if the
    request also applies to frames that are already compiled: then no frame runs compiled."""
    if SWITCHED_OFF.find() is True or os.environ.get(_VARIABLE) == "1":
        return "disabled", True
    stance = STANCE.find("default")
    if not isinstance(stance, str) or stance == "default":
        return KILL_SWITCH.eager_cause()
    return "stance", stance == "force_eager"


def _ignore_call(*_: Any, **__: Any) -> None:
    """Do nothing before the call: the stance is read after torch has set it."""
