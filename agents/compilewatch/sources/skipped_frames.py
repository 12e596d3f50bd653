"""Frames that torch leaves eager without a record: it decides so at the first call, says why to nobody, and never looks again."""

from __future__ import annotations

from typing import Any

from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.bindings import Binding
from compilewatch.sources.entries import Entries
from compilewatch.sources.limits import Latches
from compilewatch.sources.places import is_installed
from compilewatch.sources.records import frame_of
from compilewatch.sources.texts import normal
from compilewatch.sources.torch_names import SKIPS

_SKIPFILES = "skipfiles"
CAUSES = {"tracing is disabled": "disabled", _SKIPFILES: "skip", "dispatch mode": "skip"}
"""By a part of torch's reason. Others mean that there is nothing to compile, or come with a record that says more."""


class SkippedFrames(Source):
    """Hears the reason of each frame that torch skips."""

    name = "skipped_frames"
    module = "torch._dynamo.convert_frame"

    def __init__(self) -> None:
        self._binding: Binding | None = None

    def install(self, recorder: Recorder) -> Answer:
        if self._binding is None:
            self._recorder = recorder
            self._binding = Binding(SKIPS, self._on_skip, recorder)
            self._binding.bind()
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        problem = "not installed" if self._binding is None else self._binding.problem
        return ("partly", f"no {SKIPS.costs}: {problem}") if problem else ("yes", "")

    def uninstall(self) -> None:
        if self._binding is not None:
            self._binding.unbind()
            self._binding = None

    def _on_skip(self, reason: str, frame: Any, *_: Any, **__: Any) -> None:
        cause = next((cause for part, cause in CAUSES.items() if part in reason), None)
        code = frame.f_code
        # Torch skips the files of libraries wherever user code calls them; that makes no call of the job eager.
        if cause is None or (_SKIPFILES in reason and is_installed(code.co_filename)):
            return
        Entries.of(self._recorder).skipped(code)
        Latches.of(self._recorder).latch(frame_of(None, {"code": code}), cause, reason=normal(reason))
