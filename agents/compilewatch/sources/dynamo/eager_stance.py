"""What makes a whole process run eager because somebody asked for it: torch's stance, and the switches that turn compiling off."""

from __future__ import annotations

import os
from typing import Any

from compilewatch.instrument.kill_switch import SWITCH
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import SET_STANCE, STANCE, SWITCHED_OFF, problems_of
from compilewatch.sources import Answer, Source
from compilewatch.sources.function_patch import Binding

_VARIABLE = "TORCHDYNAMO_DISABLE"
"""Torch looks at it each time something is handed to `torch.compile`; the other variable becomes a setting."""


class Switches(Source):
    """Hears each change of the stance, and looks at everything about once a second."""

    name = "eager_switches"
    module = "torch._dynamo.decorators"

    def __init__(self) -> None:
        self._binding: Binding | None = None
        self._said: tuple[str, bool] = ("", False)

    def install(self, recorder: Recorder) -> Answer:
        if self._binding is None:
            self._recorder = recorder
            self._binding = Binding(SET_STANCE, _nothing, recorder, after=self._look)
            self._binding.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        if self._binding is None:
            return "no", "not installed"
        self._look()
        problems = problems_of(STANCE, SWITCHED_OFF)
        if self._binding.problem:
            problems.append(f"no {SET_STANCE.costs}: {self._binding.problem}")
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def uninstall(self) -> None:
        if self._binding is not None:
            self._binding.unbind()
            self._binding = None

    def _look(self) -> None:
        found = eager_by_request()
        if found != self._said:
            self._said = found
            self._recorder.eager_everywhere(*found)


def eager_by_request() -> tuple[str, bool]:
    """The cause, or empty, and whether it overrides what is known of single frames: then nothing at all runs compiled."""
    if SWITCHED_OFF.find() is True or os.environ.get(_VARIABLE) == "1":
        return "disabled", True
    stance = STANCE.find("default")
    if not isinstance(stance, str) or stance == "default":
        return SWITCH.cause()
    return "stance", stance == "force_eager"


def _nothing(*_: Any, **__: Any) -> None:
    """The stance is looked at when torch has set it."""
