"""What is told of one compilation: the event itself, why it happened, what broke in it, and what runs eager because of it."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.recorder import Recorder
from compilewatch.sources.caches import CacheLookups, Taken
from compilewatch.sources.compile_options import NOT_KNOWN, Options, options_of, options_told
from compilewatch.sources.fields import text
from compilewatch.sources.graph_breaks import BreakList
from compilewatch.sources.limits import Latches
from compilewatch.sources.miss_causes import MissCauses
from compilewatch.sources.phases import clock_of
from compilewatch.sources.places import compiling_locals
from compilewatch.sources.records import (
    NOWHERE,
    Frame,
    compile_id_of,
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
from compilewatch.sources.torch_names import CUDA_DEVICE, CUDA_MEMORY, CUDA_STARTED
from compilewatch.wire.report import Compile

_REMEMBERED_FRAMES = 1024
_OF_A_FRAME = ("first", "recompile", "empty")


class Ending(NamedTuple):
    """How things stood in the compiling thread when a compilation ended."""

    ended: float
    """By `time.monotonic`."""
    at: float
    compiling: Mapping[str, Any]
    phases: dict[str, float]
    in_request: bool
    lookups: Taken
    record: Any = None
    """What can be said without torch's record."""

    @classmethod
    def now(cls, recorder: Recorder) -> Ending:
        """In the calling thread, which has just compiled."""
        lookups = CacheLookups.of(recorder).take()
        return cls(time.monotonic(), time.time(), compiling_locals(), clock_of(recorder).take(), recorder.in_request(), lookups)

    def of_event(self, compile_id: str, is_forward: bool) -> Ending:
        """With what torch's record would say, from its frames."""
        failure, known = sys.exc_info()[1], self.compiling
        return self._replace(
            record=SimpleNamespace(
                compile_id=compile_id,
                is_forward=is_forward,
                fail_type=type(failure).__qualname__ if failure else None,
                fail_reason=str(failure) if failure else None,
                recompile_reason=known.get("recompile_reason"),
                has_guarded_code=known.get("guarded_code"),
                graph_op_count=known.get("graph_op_count"),
            )
        )

    def belongs_to(self, compile_id: str) -> bool:
        """Whether it may be the ending of this compilation."""
        return not self.record.compile_id or not compile_id or self.record.compile_id == compile_id


class _Thread(threading.local):
    def __init__(self) -> None:
        self.peak: int | None = None


class Teller:
    """Knows the frames that were compiled so far: backwards and autotunes name none and go by their forward's compile id."""

    def __init__(self, recorder: Recorder, latches: Latches, lookups: CacheLookups, breaks: BreakList) -> None:
        self._recorder = recorder
        self._latches = latches
        self._lookups = lookups
        self._causes = MissCauses.of(recorder)
        self._breaks = breaks
        self._thread = _Thread()
        self._known: OrderedDict[str, tuple[Frame, Options]] = OrderedDict()

    def began(self, compile_id: str) -> str:
        """A compilation began in this thread; answers the name of its frame."""
        self._thread.peak = _peak_memory()
        known, _ = self._known.get(compile_id, (NOWHERE, NOT_KNOWN))
        return text(compiling_locals().get("code"), "co_name") or known.name

    def tell(self, record: Any, ending: Ending) -> None:
        """One compilation is over."""
        compile_id, compiling = compile_id_of(record), ending.compiling
        kind, outcome = kind_of(record, compiling), outcome_of(record, compiling)
        frame, options = self._who(compile_id, record, compiling if kind in _OF_A_FRAME else {})
        reason_kind, reason = reason_of(record, outcome)
        asked = self._lookups.asked(ending.lookups, record)
        compiled = Compile(
            at=ending.at,
            id=compile_id,
            kind=kind,
            outcome=outcome,
            frame=frame.name,
            file=frame.file,
            line=frame.line,
            reason=reason,
            reason_kind=reason_kind,
            seconds=seconds_of(record, {} if kind == "autotune" else ending.phases),
            cache=asked.answers,
            saved=saved_of(record),
            new_peak=self._new_peak(),
            in_request=ending.in_request,
            key=asked.key,
            **options._asdict(),
        )
        self._recorder.compile_finished(compiled)
        self._causes.note(compiled, asked, frame.where)
        if kind == "first" and compile_id.endswith("/0"):
            self._latches.compiled_again(frame)
        self._explain(record, frame, outcome, reason)

    def _who(self, compile_id: str, record: Any, compiling: Mapping[str, Any]) -> tuple[Frame, Options]:
        frame = frame_of(record, compiling)
        if not frame.name:
            return self._known.get(compile_id, (NOWHERE, NOT_KNOWN))
        found = frame, options_of(compiling) if compiling else options_told(record)
        if not compile_id:
            return found  # compiled ahead of time: nothing that comes later can name it
        self._known[compile_id] = found
        if len(self._known) > _REMEMBERED_FRAMES:
            self._known.popitem(last=False)
        return self._known[compile_id]

    def _explain(self, record: Any, frame: Frame, outcome: str, reason: str) -> None:
        guard = guard_of(record)
        if guard:
            self._recorder.finding("guard", guard, frame.where)
        told, failed = self._breaks.tell(self._recorder.finding), bool(getattr(record, "fail_type", None))
        if is_limit(record):
            if outcome != "raised":
                self._latches.latch(frame, "limit", reason=reason)
            return
        if outcome in ("raised", "suppressed"):
            self._recorder.finding("compile_error", failure_of(record), failure_place(record, frame))
        elif outcome == "skipped" and failed and not told:
            self._recorder.finding("graph_break", failure_of(record), failure_place(record, frame))
        if outcome == "suppressed":
            self._latches.latch(frame, "error", reason=reason)
        elif outcome == "skipped" and (failed or told):
            # Without a failure and a break torch found nothing to compile: nothing of it would run faster.
            self._latches.latch(frame, "skip", reason=reason)

    def _new_peak(self) -> int | None:
        """The process's peak of GPU memory, if this compilation raised it."""
        before, self._thread.peak = self._thread.peak, None
        now = _peak_memory() if before is not None else None
        return now if now is not None and before is not None and now > before else None


def _peak_memory() -> int | None:
    """Bytes; None where CUDA is absent or not initialised by the job."""
    started, device, memory = CUDA_STARTED.find(), CUDA_DEVICE.find(), CUDA_MEMORY.find()
    try:
        return int(memory(device())["allocated_bytes"]["all"]["peak"]) if started() else None
    except (TypeError, KeyError, ValueError, RuntimeError):
        return None
