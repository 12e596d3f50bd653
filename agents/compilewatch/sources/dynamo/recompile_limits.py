"""Frames that run eager from now on: torch says so once, most of it to its log alone, and nothing afterwards."""

from __future__ import annotations

import logging
import re
import weakref
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import RESET, SET_OPTION
from compilewatch.sources import Answer, Source
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
from compilewatch.sources.dynamo.limit_settings import LimitsSet
from compilewatch.sources.dynamo.scrubber import short_path
from compilewatch.sources.dynamo.user_frames import (
    Place,
    calling_place,
    compiled_locals,
    compiling_locals,
)
from compilewatch.sources.function_patch import Binding

LOGGER = "torch._dynamo.convert_frame"
_LIMIT_MESSAGE = "torch._dynamo hit config."
_FUNCTION = re.compile(r"'(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)$", re.DOTALL)
_LATCHES: weakref.WeakKeyDictionary[Recorder, Latches] = weakref.WeakKeyDictionary()


class Latches:
    """Which frames are latched, so that the two ways to learn of one tell it once. One per recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._causes: dict[Frame, str] = {}
        self._names: dict[str, Frame] = {}

    @classmethod
    def begin(cls, recorder: Recorder) -> Latches:
        """Those of a recorder that starts anew."""
        _LATCHES.pop(recorder, None)
        return cls.of(recorder)

    @classmethod
    def of(cls, recorder: Recorder) -> Latches:
        return _LATCHES.setdefault(recorder, cls(recorder))

    def latch(self, frame: Frame, cause: str, **data: Any) -> None:
        """The frame runs eager because of `cause`; who tells it first is the one who knows most."""
        recorder = self._recorder()
        if recorder is None or not frame.name:
            return
        self._causes[frame] = cause
        recorder.latch(self._name(frame), cause, file=frame.file, line=frame.line, **data)

    def compiled_again(self, frame: Frame) -> None:
        """A latched frame compiles from the start only after a reset that nobody heard."""
        if frame in self._causes:
            self.release()

    def release(self) -> None:
        """Torch was reset: no frame is latched any more."""
        recorder = self._recorder()
        if recorder is not None:
            self._causes.clear()
            self._names.clear()
            recorder.unlatch()

    def _name(self, frame: Frame) -> str:
        """The function's name; two functions of one name are told apart by their places."""
        owner = self._names.setdefault(frame.name, frame)
        return frame.name if owner == frame else f"{frame.name} ({frame.file}:{frame.line})"


class Limits(Source):
    """Listens to torch's warning that a frame reached its recompile limit."""

    name = "recompile_limit"
    module = "torch._dynamo.convert_frame"

    def __init__(self) -> None:
        self._handler: _Handler | None = None
        self._bound: list[Binding] = []

    def install(self, recorder: Recorder) -> Answer:
        logger = logging.getLogger(LOGGER)
        if self._handler is None:
            self._handler = _Handler(recorder)
            logger.addHandler(self._handler)
            self._listen(recorder)
        return self._answer(logger)

    def poll(self, recorder: Recorder) -> Answer | None:
        """Torch defines its reset after the module that installs us was imported."""
        if not self._bound:
            return None
        for binding in self._bound:
            binding.bind()
        return self._answer(logging.getLogger(LOGGER))

    def _answer(self, logger: logging.Logger) -> Answer:
        problems = [
            f"no {SET_OPTION.costs}: {binding.problem}"
            for binding in self._bound[1:]
            if binding.problem
        ]
        if not logger.isEnabledFor(logging.WARNING):
            problems.append(
                "torch's warnings are switched off: a limit is seen in its compilation record, without its name"
            )
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def _listen(self, recorder: Recorder) -> None:
        """Hears resets, and limits as they are set."""

        def reset(*_: Any, **__: Any) -> None:
            recorder.fact_counted("reset", {"where": str(calling_place() or "")})

        def forget() -> None:
            History.of(recorder).reset()
            Latches.of(recorder).release()

        limits = LimitsSet.of(recorder)
        limits.look()
        self._bound = [
            Binding(RESET, reset, recorder, after=forget),
            Binding(SET_OPTION, limits.heard, recorder),
        ]
        for binding in self._bound:
            binding.bind()

    def uninstall(self) -> None:
        if self._handler is not None:
            logging.getLogger(LOGGER).removeHandler(self._handler)
            self._handler = None
        bound, self._bound = self._bound, []
        for binding in bound:
            binding.unbind()


class _Handler(logging.Handler):
    """Takes the one kind of message it knows and never lets an error out: the logger runs inside the job's call."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(logging.WARNING)
        self._recorder = recorder
        self._guard = FaultBarrier(recorder.internal_error)

    def emit(self, record: logging.LogRecord) -> None:
        with self._guard:
            if (
                isinstance(record.msg, str)
                and record.msg.startswith(_LIMIT_MESSAGE)
                and isinstance(record.args, tuple)
            ):
                self._limit(*record.args[:4])

    def _limit(self, limit_name: object, limit: Any, function: object, reason: object) -> None:
        compiling = compiling_locals()
        if compiling.get("one_graph"):
            return  # with fullgraph torch raises instead of running eager
        frame = frame_of(None, compiling)
        match = _FUNCTION.search(str(function))
        if not frame.name and match:
            line = int(match["line"])
            frame = Frame(match["name"], Place(short_path(match["file"]), line, match["name"]))
        causes = causes_of(
            reasons_of(None, compiling), History.of(self._recorder), inputs_of(compiled_locals())
        )
        text = recompile_reasons(causes) or (recompile_reason(str(reason)) if reason else "")
        Latches.of(self._recorder).latch(
            frame, "limit", limit_name=str(limit_name), limit=int(limit), reason=text
        )
