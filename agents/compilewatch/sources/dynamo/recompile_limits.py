"""Recompile-limit source: finds frames in eager fallback.

Torch reports the fallback once, mostly in a log warning, and runs the frame eager without further
messages."""

from __future__ import annotations

import logging
import re
import weakref
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import RESET, SET_OPTION
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.call_inputs import inputs_of
from compilewatch.sources.dynamo.compilation_metrics import (
    Frame,
    causes_of,
    frame_of,
    reasons_of,
    recompile_reason,
    recompile_reasons,
)
from compilewatch.sources.dynamo.compile_history import History
from compilewatch.sources.dynamo.limit_settings import LimitSettings
from compilewatch.sources.dynamo.scrubber import shorten_path
from compilewatch.sources.dynamo.user_frames import (
    Place,
    find_caller,
    read_compiled_locals,
    read_compiling_locals,
)
from compilewatch.sources.function_patch import FunctionPatch

LOGGER_NAME = "torch._dynamo.convert_frame"
_LIMIT_MESSAGE = "torch._dynamo hit config."
_FUNCTION = re.compile(r"'(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)$", re.DOTALL)
_LATCHES: weakref.WeakKeyDictionary[Recorder, EagerFrames] = weakref.WeakKeyDictionary()


class EagerFrames:
    """Frames in eager fallback. Torch's warning and torch's record both report a frame; the set
    keeps one entry. One for each recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._cause_by_frame: dict[Frame, str] = {}
        self._frame_by_name: dict[str, Frame] = {}

    @classmethod
    def begin(cls, recorder: Recorder) -> EagerFrames:
        """Start an empty set for a recorder."""
        _LATCHES.pop(recorder, None)
        return cls.of(recorder)

    @classmethod
    def of(cls, recorder: Recorder) -> EagerFrames:
        return _LATCHES.setdefault(recorder, cls(recorder))

    def add(self, frame: Frame, cause: str, **data: Any) -> None:
        """Record that a frame runs eager because of `cause`. The first report of a cause
        is kept: it has the most details."""
        recorder = self._recorder()
        if recorder is None or not frame.name:
            return
        self._cause_by_frame[frame] = cause
        recorder.record_eager_fallback(
            self._unique_name(frame), cause, file=frame.file, line=frame.line, **data
        )

    def on_first_compile(self, frame: Frame) -> None:
        """Handle the first compilation of a frame. A frame in eager fallback compiles again only
        after a reset, which was not observed."""
        if frame in self._cause_by_frame:
            self.clear()

    def clear(self) -> None:
        """Remove all frames after a reset of torch, which ends every eager fallback."""
        recorder = self._recorder()
        if recorder is not None:
            self._cause_by_frame.clear()
            self._frame_by_name.clear()
            recorder.clear_eager_fallbacks()

    def _unique_name(self, frame: Frame) -> str:
        """Return the function's name, with its place if another function has the same name."""
        owner = self._frame_by_name.setdefault(frame.name, frame)
        return frame.name if owner == frame else f"{frame.name} ({frame.file}:{frame.line})"


class RecompileLimits(Source):
    """Reads torch's warning that a frame reached its recompile limit, and observes resets."""

    name = "recompile_limit"
    module = "torch._dynamo.convert_frame"

    def __init__(self) -> None:
        self._handler: _WarningHandler | None = None
        self._patches: list[FunctionPatch] = []

    def install(self, recorder: Recorder) -> Capability:
        logger = logging.getLogger(LOGGER_NAME)
        if self._handler is None:
            self._handler = _WarningHandler(recorder)
            logger.addHandler(self._handler)
            self._patch_torch(recorder)
        return self._answer(logger)

    def poll(self, recorder: Recorder) -> Capability | None:
        """Retry the patches: torch defines its reset after the import that installs this source."""
        if not self._patches:
            return None
        for patch in self._patches:
            patch.bind()
        return self._answer(logging.getLogger(LOGGER_NAME))

    def _answer(self, logger: logging.Logger) -> Capability:
        problems = [
            f"no {SET_OPTION.lost_capability}: {patch.problem}"
            for patch in self._patches[1:]
            if patch.problem
        ]
        if not logger.isEnabledFor(logging.WARNING):
            problems.append(
                "torch's warnings are off: a reached limit is read from the compilation record, "
                "without the name of the limit"
            )
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def _patch_torch(self, recorder: Recorder) -> None:
        """Observe resets and changes of the limits."""

        def count_reset(*_: Any, **__: Any) -> None:
            recorder.count_fact("reset", {"where": str(find_caller() or "")})

        def clear_state() -> None:
            History.of(recorder).reset()
            EagerFrames.of(recorder).clear()

        limits = LimitSettings.of(recorder)
        limits.read_thread()
        self._patches = [
            FunctionPatch(RESET, count_reset, recorder, after=clear_state),
            FunctionPatch(SET_OPTION, limits.on_option_set, recorder),
        ]
        for patch in self._patches:
            patch.bind()

    def uninstall(self) -> None:
        if self._handler is not None:
            logging.getLogger(LOGGER_NAME).removeHandler(self._handler)
            self._handler = None
        patches, self._patches = self._patches, []
        for patch in patches:
            patch.unbind()


class _WarningHandler(logging.Handler):
    """Handles torch's limit warning. Never raises: the logger runs inside a call of the job."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(logging.WARNING)
        self._recorder = recorder
        self._barrier = FaultBarrier(recorder.record_internal_error)

    def emit(self, record: logging.LogRecord) -> None:
        with self._barrier:
            if (
                isinstance(record.msg, str)
                and record.msg.startswith(_LIMIT_MESSAGE)
                and isinstance(record.args, tuple)
            ):
                self._on_limit(*record.args[:4])

    def _on_limit(self, limit_name: object, limit: Any, function: object, reason: object) -> None:
        compiling = read_compiling_locals()
        if compiling.get("one_graph"):
            return  # with fullgraph torch raises instead of running eager
        frame = frame_of(None, compiling)
        match = _FUNCTION.search(str(function))
        if not frame.name and match:
            line = int(match["line"])
            frame = Frame(match["name"], Place(shorten_path(match["file"]), line, match["name"]))
        causes = causes_of(
            reasons_of(None, compiling),
            History.of(self._recorder),
            inputs_of(read_compiled_locals()),
        )
        text = recompile_reasons(causes) or (recompile_reason(str(reason)) if reason else "")
        EagerFrames.of(self._recorder).add(
            frame, "limit", limit_name=str(limit_name), limit=int(limit), reason=text
        )
