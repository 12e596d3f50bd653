"""Compilations: torch's record of each one, with the begin and end of its timers for the live start and the phases."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from compilewatch.guard import Guard
from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.caches import CacheCounters
from compilewatch.sources.graph_breaks import BreakList
from compilewatch.sources.limits import Latches
from compilewatch.sources.phases import BACKWARD, ROOTS, PhaseClock
from compilewatch.sources.places import compiling_locals
from compilewatch.sources.records import (
    NOWHERE,
    Frame,
    failure_of,
    failure_place,
    frame_of,
    guard_of,
    is_limit,
    kind_of,
    outcome_of,
    reason_of,
    saved_of,
    seconds_of,
)
from compilewatch.wire.report import Compile

_REMEMBERED_FRAMES = 1024
_RECORDS = "log_compilation_event"
_EVENTS = "record_chromium_event_internal"


class _Thread(threading.local):
    """What one thread is compiling."""

    def __init__(self) -> None:
        self.clock = PhaseClock()
        self.peak: int | None = None


class Compilations(Source):
    """Binds torch's two compile-time callbacks, and tells the recorder what they say."""

    name = "compilations"
    module = "torch._dynamo.utils"

    def __init__(self) -> None:
        self._bound: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self._answer: Answer = ("no", "not installed")
        self._thread = _Thread()
        self._frames: OrderedDict[str, Frame] = OrderedDict()

    def install(self, recorder: Recorder) -> Answer:
        if self._bound:
            return self._answer
        self._recorder = recorder
        self._latches = Latches.begin(recorder)
        self._utils = utils = sys.modules[self.module]
        self._caches = CacheCounters(getattr(utils, "counters", {}))
        self._breaks = BreakList(getattr(utils, "graph_break_reasons", []))
        for name, hook in ((_RECORDS, self._on_record), (_EVENTS, self._on_event)):
            if hasattr(utils, name):
                self._bind(utils, name, hook)
        missing = [name for name in (_RECORDS, _EVENTS, "counters", "graph_break_reasons") if not hasattr(utils, name)]
        grade = "partly" if self._bound else "no"
        self._answer = (grade, "this torch has no " + ", no ".join(missing)) if missing else ("yes", "")
        return self._answer

    def uninstall(self) -> None:
        bound, self._bound = self._bound, {}
        for name, (ours, previous) in bound.items():
            # Someone who wrapped us later still calls us: then we stay in the chain, silent.
            if getattr(self._utils, name, None) is ours:
                setattr(self._utils, name, previous)

    def _bind(self, utils: ModuleType, name: str, hook: Callable[[Any], None]) -> None:
        previous, guard = getattr(utils, name), Guard(self._recorder)

        def ours(*args: Any, **kwargs: Any) -> Any:
            if name in self._bound:
                with guard:
                    hook(args[0])
            return previous(*args, **kwargs)

        self._bound[name] = (ours, previous)
        setattr(utils, name, ours)

    def _on_event(self, event: dict[str, Any]) -> None:
        name, at = event["name"], event["ts"] / 1e6
        clock, is_root = self._thread.clock, name in ROOTS
        if not is_root and not clock.running:
            return
        if event["ph"] == "B":
            if is_root and not clock.running:
                self._started(_compile_id(event))
            clock.begin(name, at)
        elif event["ph"] == "E":
            clock.end(name, at)
            if is_root and not clock.running:
                self._recorder.compile_stopped()
                if not self._records_come():
                    self._finished(_record_of(event))

    def _started(self, compile_id: str) -> None:
        self._thread.clock.reset()
        self._thread.peak = _peak_memory()
        frame = frame_of(None, compiling_locals())
        self._recorder.compile_started(frame.name or self._frames.get(compile_id, NOWHERE).name)

    def _records_come(self) -> bool:
        config = sys.modules.get("torch._dynamo.config")
        return _RECORDS in self._bound and bool(getattr(config, "log_compilation_metrics", True))

    def _on_record(self, record: Any) -> None:
        self._finished(record)

    def _finished(self, record: Any) -> None:
        compiling = compiling_locals()
        compile_id = str(getattr(record, "compile_id", None) or "")
        kind, outcome = kind_of(record, compiling), outcome_of(record, compiling)
        frame = self._frame(compile_id, record, compiling if kind not in ("autotune", "backward") else {})
        phases = {} if kind == "autotune" else self._thread.clock.take()
        self._recorder.compile_finished(
            Compile(
                at=time.time(),
                id=compile_id,
                kind=kind,
                outcome=outcome,
                frame=frame.name,
                file=frame.file,
                line=frame.line,
                reason=reason_of(record, outcome),
                seconds=seconds_of(record, phases),
                cache=self._caches.delta(),
                saved=saved_of(record),
                new_peak=self._new_peak(),
            )
        )
        if kind == "first" and compile_id.endswith("/0"):
            self._latches.compiled_again(frame)
        self._explain(record, frame, outcome, compiling)

    def _frame(self, compile_id: str, record: Any, compiling: Mapping[str, Any]) -> Frame:
        """The record's frame; backwards and autotunes name none and go by their forward's compile id."""
        frame = frame_of(record, compiling)
        if not frame.name:
            return self._frames.get(compile_id, NOWHERE)
        self._frames[compile_id] = frame
        if len(self._frames) > _REMEMBERED_FRAMES:
            self._frames.popitem(last=False)
        return frame

    def _explain(self, record: Any, frame: Frame, outcome: str, compiling: Mapping[str, Any]) -> None:
        guard = guard_of(record)
        if guard:
            self._recorder.finding("guard", guard, frame.where)
        told = self._breaks.tell(self._recorder.finding)
        if is_limit(record):
            if outcome != "raised":
                self._latches.latch(frame, "limit", reason=reason_of(record, outcome))
        elif outcome in ("raised", "suppressed"):
            self._recorder.finding("compile_error", failure_of(record), failure_place(record, frame))
        elif outcome == "skipped" and getattr(record, "fail_type", None) and not told:
            self._recorder.finding("graph_break", failure_of(record), failure_place(record, frame))
        if outcome == "suppressed" or (outcome == "skipped" and not is_limit(record)):
            cause = "skip" if outcome == "skipped" else "error"
            self._latches.latch(frame, cause, reason=reason_of(record, outcome))

    def _new_peak(self) -> int | None:
        """The process's peak of GPU memory, if this compilation raised it."""
        before, self._thread.peak = self._thread.peak, None
        now = _peak_memory() if before is not None else None
        return now if now is not None and before is not None and now > before else None


def _compile_id(event: dict[str, Any]) -> str:
    return str((event.get("args") or {}).get("compile_id") or "")


def _record_of(event: dict[str, Any]) -> Any:
    """What torch's record would say, from its frames: for a job that turned the records off."""
    compiling = compiling_locals()
    failure = sys.exc_info()[1]
    return SimpleNamespace(
        compile_id=_compile_id(event),
        is_forward=event["name"] != BACKWARD,
        fail_type=type(failure).__qualname__ if failure else None,
        fail_reason=str(failure) if failure else None,
        recompile_reason=compiling.get("recompile_reason"),
        has_guarded_code=compiling.get("guarded_code") is not None if compiling else None,
        graph_op_count=compiling.get("graph_op_count"),
    )


def _peak_memory() -> int | None:
    """Bytes; None where CUDA is absent or not initialised by the job."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        stats = torch._C._cuda_memoryStats(torch._C._cuda_getDevice())
        return int(stats["allocated_bytes"]["all"]["peak"])
    except (AttributeError, KeyError, RuntimeError):
        return None
