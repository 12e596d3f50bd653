"""Frames that torch leaves eager without a record: it decides so at the first call, says why to nobody, and never looks again."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import SKIPS
from compilewatch.sources.dynamo.cache_entries import Entries
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.dynamo.recompile_limits import Latches
from compilewatch.sources.dynamo.scrubber import normal
from compilewatch.sources.dynamo.user_frames import is_installed
from compilewatch.sources.function_source import FunctionSource

_SKIPFILES = "skipfiles"
CAUSES = {"tracing is disabled": "disabled", _SKIPFILES: "skip", "dispatch mode": "skip"}
"""By a part of torch's reason. Others mean that there is nothing to compile, or come with a record that says more."""


class SkippedFrames(FunctionSource):
    """Hears the reason of each frame that torch skips."""

    name = "skipped_frames"
    module = "torch._dynamo.convert_frame"
    function = SKIPS

    def hear(self, reason: str, frame: Any, *_: Any, **__: Any) -> None:
        cause = next((cause for part, cause in CAUSES.items() if part in reason), None)
        code = frame.f_code
        # Torch skips the files of libraries wherever user code calls them; that makes no call of the job eager.
        if cause is None or (_SKIPFILES in reason and is_installed(code.co_filename)):
            return
        Entries.of(self._recorder).skipped(code)
        Latches.of(self._recorder).latch(
            frame_of(None, {"code": code}), cause, reason=normal(reason)
        )
