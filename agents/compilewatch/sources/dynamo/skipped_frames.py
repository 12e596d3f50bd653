"""Skip observer: finds frames that torch leaves eager without a record.

Torch decides at the first call of the frame, reports no reason and does not decide again."""

from __future__ import annotations

from typing import Any

from compilewatch.runtime.torch_internals import SKIPS
from compilewatch.sources.dynamo.cache_entries import EntryClassifier
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.dynamo.recompile_limits import EagerFrames
from compilewatch.sources.dynamo.scrubber import normalize
from compilewatch.sources.dynamo.user_frames import is_installed
from compilewatch.sources.function_source import FunctionSource

_SKIPFILES = "skipfiles"
CAUSES = {"tracing is disabled": "disabled", _SKIPFILES: "skip", "dispatch mode": "skip"}
"""Cause of eager fallback by a part of torch's reason. Other reasons mean that there is nothing to
compile, or torch sends a record with more details (`compile_reporter`). A new cause is also a new
word of the wire: `wire.messages.EAGER_CAUSES`."""


class SkippedFrames(FunctionSource):
    """Observes the reason of each frame that torch skips."""

    name = "skipped_frames"
    module = "torch._dynamo.convert_frame"
    function = SKIPS

    def on_call(self, reason: str, frame: Any, *_: Any, **__: Any) -> None:
        cause = next((cause for part, cause in CAUSES.items() if part in reason), None)
        code = frame.f_code
        # Torch skips library files wherever user code calls them; no call of the job runs eager
        # because of such a skip.
        if cause is None or (_SKIPFILES in reason and is_installed(code.co_filename)):
            return
        EntryClassifier.of(self._recorder).on_frame_skipped(code)
        EagerFrames.of(self._recorder).add(
            frame_of(None, {"code": code}), cause, reason=normalize(reason)
        )
