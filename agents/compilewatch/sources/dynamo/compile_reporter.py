"""What is told of one compilation: the event itself, why it happened, what broke in it, and what runs eager because of it."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import CUDA_DEVICE, CUDA_MEMORY, CUDA_STARTED
from compilewatch.sources.dynamo.bypassed_modules import Unentered
from compilewatch.sources.dynamo.cache_entries import Entries
from compilewatch.sources.dynamo.call_inputs import NO_INPUTS, Inputs, inputs_of
from compilewatch.sources.dynamo.compilation_metrics import (
    NOWHERE,
    Frame,
    causes_of,
    compile_id_of,
    failure_of,
    failure_place,
    frame_of,
    function_compiled,
    guard_told,
    is_at_run_time,
    is_limit,
    kind_of,
    outcome_of,
    reason_of,
    reasons_of,
    recompile_reasons,
    saved_of,
    seconds_of,
)
from compilewatch.sources.dynamo.compile_history import AGAIN, History
from compilewatch.sources.dynamo.compile_options import NOT_KNOWN, Options, options_of, options_told
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.guard_values import Failed, GuardValues, failed_guard
from compilewatch.sources.dynamo.late_hooks import CompiledModules
from compilewatch.sources.dynamo.limit_settings import NOT_LIMITED, InForce, LimitsSet
from compilewatch.sources.dynamo.phase_timer import clock_of
from compilewatch.sources.dynamo.recompile_limits import Latches
from compilewatch.sources.dynamo.typed_getattr import text
from compilewatch.sources.dynamo.user_frames import compiled_locals, compiling_locals
from compilewatch.sources.inductor.cache_lookups import NOTHING_ASKED, CacheLookups, Taken
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.wire.messages import Compile

_REMEMBERED_FRAMES = 1024
NO_GUARDS: Mapping[str, Failed] = MappingProxyType({})
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
    inputs: Inputs = NO_INPUTS
    in_force: InForce = NOT_LIMITED
    failed: Mapping[str, Failed] = NO_GUARDS
    """By torch's reason the guard that failed, with the values that it met."""
    record: Any = None
    """What can be said without torch's record."""

    @classmethod
    def now(cls, recorder: Recorder) -> Ending:
        """In the calling thread, which has just compiled."""
        lookups = CacheLookups.of(recorder).take()
        ending = cls(
            time.monotonic(),
            time.time(),
            compiling_locals(),
            clock_of(recorder).take(),
            recorder.in_request(),
            lookups,
        )
        with FaultBarrier(recorder.internal_error):
            return ending._with_the_frame(LimitsSet.of(recorder))
        return ending

    def _with_the_frame(self, limits: LimitsSet) -> Ending:
        """With what is seen of the function that was compiled, and of its cache entries."""
        variables = compiled_locals()
        failed = {
            reason: failed_guard(reason, variables) for reason in reasons_of(None, self.compiling)
        }
        return self._replace(
            inputs=inputs_of(variables), in_force=limits.in_force(self.compiling), failed=failed
        )

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
    """Knows the frames compiled so far: backwards and what code does when it runs name none and go by their forward's compile id."""

    def __init__(
        self, recorder: Recorder, latches: Latches, lookups: CacheLookups, breaks: BreakList
    ) -> None:
        self._recorder = recorder
        self._latches = latches
        self._entries = Entries.of(recorder)
        self._lookups = lookups
        self._causes = MissCauses.of(recorder)
        self._modules = CompiledModules.of(recorder)
        self._unentered = Unentered(recorder)
        self._breaks = breaks
        self._thread = _Thread()
        self._known: OrderedDict[str, tuple[Frame, Options]] = OrderedDict()
        self._history = History.begin(recorder)
        self._values = GuardValues()
        self._ignored: set[tuple[str, str]] = set()

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
        again = self._again(record, kind, outcome, ending)
        causes = (
            [] if again else causes_of(reasons_of(record, compiling), self._history, ending.inputs)
        )
        reason_kind, reason = reason_of(record, outcome, recompile_reasons(causes), again)
        # What failed has no code that a cache could hold, and a CUDA graph is never in one: neither looked anything up.
        asked = (
            self._lookups.asked(ending.lookups, record)
            if outcome == "ok" and kind != "cuda_graph"
            else NOTHING_ASKED
        )
        compiled = Compile(
            at=ending.at,
            id=compile_id,
            kind="recompile" if again else kind,
            outcome=outcome,
            frame=frame.name,
            file=frame.file,
            line=frame.line,
            reason=reason,
            reason_kind=reason_kind,
            seconds=seconds_of(record, {} if is_at_run_time(record) else ending.phases),
            cache=asked.answers,
            saved=saved_of(record),
            new_peak=self._new_peak(),
            in_request=ending.in_request,
            key=asked.key,
            entries=ending.in_force.entries if kind in _OF_A_FRAME else None,
            limit=ending.in_force.limit if kind in _OF_A_FRAME else None,
            **options._asdict(),
        )
        self._recorder.compile_finished(compiled)
        self._causes.note(compiled, asked, frame.where)
        if outcome == "ok":
            self._modules.note(compiling.get("modules", {}))
            self._unentered.note(compiling, frame)
        if kind == "first" and compile_id.endswith("/0"):
            self._latches.compiled_again(frame)
        if kind in _OF_A_FRAME:
            self._why_again(frame, ending, again, causes)
        stays_eager = self._explain(record, frame, outcome, reason)
        if kind in _OF_A_FRAME and outcome != "raised" and not is_limit(record):
            self._entries.ended(compiling.get("code"), stays_eager)

    def _again(self, record: Any, kind: str, outcome: str, ending: Ending) -> str:
        """One of AGAIN where no guard says why a function is compiled again."""
        compile_id = compile_id_of(record)
        if kind not in _OF_A_FRAME or not compile_id or is_limit(record):
            return ""
        function = function_compiled(record, ending.compiling)
        return self._history.note(
            function, compile_id, kind, ending.inputs, outcome in ("raised", "suppressed")
        )

    def _why_again(
        self, frame: Frame, ending: Ending, again: str, causes: Iterable[list[str]]
    ) -> None:
        """Findings of why the frame is compiled again, and of a limit that it ignores."""
        if again:
            self._recorder.finding("guard", AGAIN[again], frame.where)
        for reasons in causes:
            self._guard(reasons, frame, ending)
        self._limit_ignored(frame, ending.in_force.ignored)

    def _guard(self, reasons: list[str], frame: Frame, ending: Ending) -> None:
        """One guard failed for the entries that these reasons are of; torch lists the newest first."""
        group = guard_told(reasons[0])
        failed = [
            ending.failed.get(reason) or failed_guard(reason, {}) for reason in reversed(reasons)
        ]
        varies = self._values.note(group, frame.where, failed)
        self._recorder.finding(
            "guard",
            group,
            frame.where,
            values=varies.values,
            distinct=varies.distinct,
            pattern=varies.pattern,
        )

    def _limit_ignored(self, frame: Frame, ignored: Iterable[str]) -> None:
        """Once for each place, however often it compiles."""
        for text_ in ignored:
            if (text_, frame.where) not in self._ignored and len(
                self._ignored
            ) < _REMEMBERED_FRAMES:
                self._ignored.add((text_, frame.where))
                self._recorder.finding("limit_not_in_force", text_, frame.where)

    def _who(
        self, compile_id: str, record: Any, compiling: Mapping[str, Any]
    ) -> tuple[Frame, Options]:
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

    def _explain(self, record: Any, frame: Frame, outcome: str, reason: str) -> bool:
        """Answers whether torch leaves the frame eager for good though there is something to compile in it."""
        told, failed = (
            self._breaks.tell(self._recorder.finding),
            bool(getattr(record, "fail_type", None)),
        )
        if is_limit(record):
            if outcome != "raised":
                self._latches.latch(frame, "limit", reason=reason)
            return False  # its inputs are looked up as before
        if outcome in ("raised", "suppressed"):
            self._recorder.finding(
                "compile_error", failure_of(record), failure_place(record, frame)
            )
        elif outcome == "skipped" and failed and not told:
            self._recorder.finding("graph_break", failure_of(record), failure_place(record, frame))
        # Without a failure and a break torch found nothing to compile: nothing of it would run faster.
        stays = outcome == "suppressed" or (outcome == "skipped" and (failed or bool(told)))
        if stays:
            self._latches.latch(
                frame, "error" if outcome == "suppressed" else "skip", reason=reason
            )
        return stays

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
