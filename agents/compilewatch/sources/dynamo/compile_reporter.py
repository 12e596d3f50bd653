"""Compile reporter: turns one finished compilation into an event and its findings.

Event correlation: torch sends timer events while it compiles and one record afterwards.
`compilations.py` pairs them; this module merges a pair into one `Compile` event. The findings
follow: failed guard, graph breaks, errors, eager fallback.

Invariants:
- `CompileOutcome` is captured on the compiling thread while torch's `_compile` is on the stack. It
  holds texts, numbers and weak references to modules, no tensor.
- The reporter runs on the compiling thread; on the agent's thread for a compilation without a
  record. Tables are bounded. The event precedes its findings.
- The history precedes the causes: a reset found there empties the entries.
- Fields of torch are read by type; a missing field is unknown.

Costs: one walk of the stack and one pass over at most 64 variables per compilation.
Source: `record_chromium_event_internal` in `torch/_dynamo/utils.py`; local variables of `_compile`
in `torch/_dynamo/convert_frame.py`."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.sources.cuda.memory_peak import MemoryPeak
from compilewatch.sources.dynamo.bypassed_modules import BypassedModules
from compilewatch.sources.dynamo.cache_entries import EntryClassifier
from compilewatch.sources.dynamo.call_inputs import NO_INPUTS, Inputs, inputs_of
from compilewatch.sources.dynamo.compilation_metrics import (
    NO_FRAME,
    Frame,
    causes_of,
    compile_id_of,
    failure_of,
    failure_place,
    frame_of,
    function_of_record,
    is_at_run_time,
    is_limit,
    kind_of,
    outcome_of,
    reason_of,
    reasons_of,
    recompile_reasons,
    saved_seconds_of,
    seconds_of,
)
from compilewatch.sources.dynamo.compile_history import History
from compilewatch.sources.dynamo.compile_options import (
    UNKNOWN_OPTIONS,
    Options,
    options_of,
    options_of_record,
)
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.guard_values import FailedGuard, parse_failed_guard
from compilewatch.sources.dynamo.late_hooks import CompiledModules
from compilewatch.sources.dynamo.limit_settings import NO_LIMIT, LimitSettings, LimitUsage
from compilewatch.sources.dynamo.phase_timer import clock_of
from compilewatch.sources.dynamo.recompile_findings import RecompileFindings
from compilewatch.sources.dynamo.recompile_limits import EagerFrames
from compilewatch.sources.dynamo.typed_getattr import get_text
from compilewatch.sources.dynamo.user_frames import read_compiled_locals, read_compiling_locals
from compilewatch.sources.inductor.cache_lookups import (
    NO_ANSWERS,
    CacheAnswers,
    CacheLookups,
    LookupResult,
)
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.wire.messages import Compile

_MAX_FRAMES = 1024
NO_FAILED_GUARDS: Mapping[str, FailedGuard] = MappingProxyType({})
_FRAME_KINDS = ("first", "recompile", "empty")


class CompileOutcome(NamedTuple):
    """State of the compiling thread at the end of a compilation."""

    end_monotonic: float
    """Time of the end by `time.monotonic`."""
    at: float
    """Time of the end by `time.time`."""
    compile_locals: Mapping[str, Any]
    """Local variables of torch's `_compile`, as `read_compiling_locals` returns them."""
    phase_seconds: dict[str, float]
    in_request: bool
    lookups: LookupResult
    inputs: Inputs = NO_INPUTS
    limit_usage: LimitUsage = NO_LIMIT
    failed_guards: Mapping[str, FailedGuard] = NO_FAILED_GUARDS
    """The failed guard of each of torch's reasons, with the values that the guard met."""
    record: Any = None
    """Substitute for torch's record, built from the frames of `_compile`."""

    @classmethod
    def capture(cls, recorder: Recorder) -> CompileOutcome:
        """Capture the state of the calling thread, which has just compiled."""
        lookups = CacheLookups.of(recorder).collect()
        ending = cls(
            time.monotonic(),
            time.time(),
            read_compiling_locals(),
            clock_of(recorder).collect(),
            recorder.is_in_request(),
            lookups,
        )
        with FaultBarrier(recorder.record_internal_error):
            return ending._add_frame(LimitSettings.of(recorder))
        return ending

    def _add_frame(self, limits: LimitSettings) -> CompileOutcome:
        """Add the inputs of the compiled function, its cache entries and its failed guards."""
        variables = read_compiled_locals()
        failed = {
            reason: parse_failed_guard(reason, variables)
            for reason in reasons_of(None, self.compile_locals)
        }
        return self._replace(
            inputs=inputs_of(variables),
            limit_usage=limits.find_usage(self.compile_locals),
            failed_guards=failed,
        )

    def add_record(self, compile_id: str, is_forward: bool) -> CompileOutcome:
        """Add a substitute for torch's record, for a compilation that may get none."""
        failure, known = sys.exc_info()[1], self.compile_locals
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
        """True if this may be the end of the compilation `compile_id`."""
        return not self.record.compile_id or not compile_id or self.record.compile_id == compile_id


class _Facts(NamedTuple):
    """Facts about one compilation, merged from torch's record and the captured state."""

    record: Any
    ending: CompileOutcome
    compile_id: str
    kind: str
    outcome: str
    frame: Frame
    options: Options
    repeat: str
    """A key of AGAIN if the function compiles again without a failed guard, otherwise empty."""
    causes: list[list[str]]
    reason_kind: str
    reason: str

    @property
    def is_frame(self) -> bool:
        """True if Dynamo compiled a frame: no backward graph and no work at run time."""
        return self.kind in _FRAME_KINDS


class CompileReporter:
    """Reports compilations and keeps the frames compiled so far. Records of backward graphs and of
    work at run time name no frame: the compile ID of the forward frame identifies them."""

    def __init__(
        self, recorder: Recorder, latches: EagerFrames, lookups: CacheLookups, breaks: BreakList
    ) -> None:
        self._recorder = recorder
        self._latches = latches
        self._entries = EntryClassifier.of(recorder)
        self._lookups = lookups
        self._causes = MissCauses.of(recorder)
        self._modules = CompiledModules.of(recorder)
        self._unentered = BypassedModules(recorder)
        self._breaks = breaks
        self._memory_peak = MemoryPeak()
        self._frames: OrderedDict[str, tuple[Frame, Options]] = OrderedDict()
        """Frame and options of each compile ID."""
        self._history = History.begin(recorder)
        self._findings = RecompileFindings(recorder)

    def on_compile_start(self, compile_id: str) -> str:
        """Record the start of a compilation on this thread; return the name of its frame."""
        self._memory_peak.record_start()
        known, _ = self._frames.get(compile_id, (NO_FRAME, UNKNOWN_OPTIONS))
        return get_text(read_compiling_locals().get("code"), "co_name") or known.name

    def report(self, record: Any, ending: CompileOutcome) -> None:
        """Report one finished compilation: first the event, then its findings."""
        facts = self._collect_facts(record, ending)
        asked = self._collect_lookups(facts)
        compiled = self._build_event(facts, asked)
        self._recorder.record_compile(compiled)
        self._causes.queue(compiled, asked, facts.frame.where)
        if facts.outcome == "ok":
            self._modules.note(ending.compile_locals.get("modules", {}))
            self._unentered.note(ending.compile_locals, facts.frame)
        if facts.kind == "first" and facts.compile_id.endswith("/0"):
            self._latches.on_first_compile(facts.frame)
        if facts.is_frame:
            self._findings.report(
                facts.frame,
                facts.repeat,
                facts.causes,
                ending.failed_guards,
                ending.limit_usage.ignored,
            )
        stays_eager = self._report_failure(facts)
        if facts.is_frame and facts.outcome != "raised" and not is_limit(record):
            self._entries.on_frame_end(ending.compile_locals.get("code"), stays_eager)

    def _collect_facts(self, record: Any, ending: CompileOutcome) -> _Facts:
        compile_id, compiling = compile_id_of(record), ending.compile_locals
        kind, outcome = kind_of(record, compiling), outcome_of(record, compiling)
        frame, options = self._identify_frame(
            compile_id, record, compiling if kind in _FRAME_KINDS else {}
        )
        repeat = self._find_repeat(record, kind, outcome, ending)
        causes = (
            [] if repeat else causes_of(reasons_of(record, compiling), self._history, ending.inputs)
        )
        reasons = reason_of(record, outcome, recompile_reasons(causes), repeat)
        return _Facts(
            record, ending, compile_id, kind, outcome, frame, options, repeat, causes, *reasons
        )

    def _collect_lookups(self, facts: _Facts) -> CacheAnswers:
        """Return the cache lookups. A failed compilation has no code that a cache could hold, and
        no cache holds CUDA graphs: neither looks up anything."""
        if facts.outcome != "ok" or facts.kind == "cuda_graph":
            return NO_ANSWERS
        return self._lookups.merge_answers(facts.ending.lookups, facts.record)

    def _build_event(self, facts: _Facts, asked: CacheAnswers) -> Compile:
        record, ending, frame = facts.record, facts.ending, facts.frame
        return Compile(
            at=ending.at,
            id=facts.compile_id,
            kind="recompile" if facts.repeat else facts.kind,
            outcome=facts.outcome,
            frame=frame.name,
            file=frame.file,
            line=frame.line,
            reason=facts.reason,
            reason_kind=facts.reason_kind,
            seconds=seconds_of(record, {} if is_at_run_time(record) else ending.phase_seconds),
            cache=asked.answers,
            saved=saved_seconds_of(record),
            new_peak=self._memory_peak.read_new_peak(),
            in_request=ending.in_request,
            key=asked.key,
            entries=ending.limit_usage.entries if facts.is_frame else None,
            limit=ending.limit_usage.limit if facts.is_frame else None,
            **facts.options._asdict(),
        )

    def _find_repeat(self, record: Any, kind: str, outcome: str, ending: CompileOutcome) -> str:
        """Return a key of AGAIN if a function compiles again and no guard is the cause."""
        compile_id = compile_id_of(record)
        if kind not in _FRAME_KINDS or not compile_id or is_limit(record):
            return ""
        function = function_of_record(record, ending.compile_locals)
        return self._history.note(
            function, compile_id, kind, ending.inputs, outcome in ("raised", "suppressed")
        )

    def _identify_frame(
        self, compile_id: str, record: Any, compiling: Mapping[str, Any]
    ) -> tuple[Frame, Options]:
        frame = frame_of(record, compiling)
        if not frame.name:
            return self._frames.get(compile_id, (NO_FRAME, UNKNOWN_OPTIONS))
        found = frame, options_of(compiling) if compiling else options_of_record(record)
        if not compile_id:
            return found  # compiled ahead of time: no later record refers to this frame
        self._frames[compile_id] = found
        if len(self._frames) > _MAX_FRAMES:
            self._frames.popitem(last=False)
        return self._frames[compile_id]

    def _report_failure(self, facts: _Facts) -> bool:
        """Report graph breaks, errors and eager fallback. Return True if torch leaves the frame
        eager until a reset although the frame contains work to compile."""
        record, frame, outcome = facts.record, facts.frame, facts.outcome
        break_count = self._breaks.report_new(self._recorder.record_finding)
        has_failed = bool(getattr(record, "fail_type", None))
        if is_limit(record):
            if outcome != "raised":
                self._latches.add(frame, "limit", reason=facts.reason)
            return False  # torch still looks up the inputs of the frame
        if outcome in ("raised", "suppressed"):
            self._recorder.record_finding(
                "compile_error", failure_of(record), failure_place(record, frame)
            )
        elif outcome == "skipped" and has_failed and not break_count:
            self._recorder.record_finding(
                "graph_break", failure_of(record), failure_place(record, frame)
            )
        # Without a failure and a break, torch found nothing to compile: eager is not slower.
        stays_eager = outcome == "suppressed" or (
            outcome == "skipped" and (has_failed or bool(break_count))
        )
        if stays_eager:
            cause = "error" if outcome == "suppressed" else "skip"
            self._latches.add(frame, cause, reason=facts.reason)
        return stays_eager
