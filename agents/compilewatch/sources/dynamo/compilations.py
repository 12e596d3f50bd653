"""Compilation source: pairs torch's record of each compilation with the events of its timers.

The timer events give the live start and the phases; the record gives kind, outcome and reasons."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import (
    AUTOMATIC,
    BREAKS,
    COUNTERS,
    EVENTS,
    RECORDS,
    RECORDS_ON,
    STATIC_FIRST,
    problems_of,
)
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.compilation_metrics import (
    compile_id_of,
    is_at_run_time,
    kind_of,
    run_time_part_of,
)
from compilewatch.sources.dynamo.compile_reporter import CompileOutcome, CompileReporter
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.phase_timer import (
    AHEAD_OF_TIME,
    BACKWARD,
    CAPTURE_PHASES,
    PHASES,
    ROOTS,
    clock_of,
)
from compilewatch.sources.dynamo.recompile_limits import EagerFrames
from compilewatch.sources.function_patch import FunctionPatch
from compilewatch.sources.inductor.cache_lookups import LOOKUPS, CacheLookups

RECORD_WAIT_SECONDS = 1.0
"""Wait for torch's record after the last timer event. Torch sends the record immediately, on the
same thread; after this time no record will follow."""


class Compilations(Source):
    """Patches torch's functions for events and records. Reports each compilation once, with its
    record if there is one."""

    name = "compilations"
    module = "torch._dynamo.utils"

    def __init__(self) -> None:
        self._patches: list[FunctionPatch] = []
        self._list_problems: list[str] = []
        self._unconfirmed: dict[int, CompileOutcome] = {}
        self._pid = os.getpid()
        self._reported_early: deque[tuple[str, bool]] = deque(maxlen=64)
        self._expects_run_time_record = False
        """True after `aot_compile`, until its record at run time."""

    def install(self, recorder: Recorder) -> Capability:
        if self._patches:
            return self._answer()
        self._recorder = recorder
        self._list_problems = problems_of(COUNTERS, BREAKS)
        counters = {} if COUNTERS.problem() else COUNTERS.find()
        breaks = [] if BREAKS.problem() else BREAKS.find()
        self._lookups = CacheLookups.of(recorder)
        self._lookups.set_counters(counters)
        self._reporter = CompileReporter(
            recorder, EagerFrames.begin(recorder), self._lookups, BreakList(breaks)
        )
        self._records = FunctionPatch(RECORDS, self._on_record, recorder)
        self._events = FunctionPatch(EVENTS, self._on_event, recorder)
        self._patches = [self._records, self._events]
        for patch in self._patches:
            patch.bind()
        return self._answer()

    def poll(self, recorder: Recorder) -> Capability | None:
        """Report ended compilations without a record, and return the state of the patches."""
        self._report_unconfirmed(time.monotonic() - RECORD_WAIT_SECONDS)
        return self._answer() if self._patches else None

    def uninstall(self) -> None:
        patches, self._patches, self._list_problems = self._patches, [], []
        for patch in patches:
            patch.unbind()
        if patches:
            self._report_unconfirmed(time.monotonic())

    def _answer(self) -> Capability:
        problems = [patch.problem for patch in self._patches if patch.problem]
        problems += self._list_problems + problems_of(STATIC_FIRST, AUTOMATIC)
        if not any(patch.is_listening for patch in self._patches):
            return "no", "; ".join(problems)
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def _on_event(self, event: dict[str, Any], *_: Any, **__: Any) -> None:
        name = event["name"]
        if PHASES[name] is None:
            return  # true for most events
        at, clock, is_root = event["ts"] / 1e6, clock_of(self._recorder), name in ROOTS
        if not is_root and not clock.is_running:
            return
        if event["ph"] == "B":
            if is_root and not clock.is_running:
                self._on_start(event)
            clock.begin(name, at)
        elif event["ph"] == "E":
            clock.end(name, at)
            if name in LOOKUPS:
                self._lookups.on_timer_end(event)
            if is_root and not clock.is_running:
                self._on_end(event)

    def _on_start(self, event: dict[str, Any]) -> None:
        before = self._unconfirmed.pop(threading.get_ident(), None)
        if before is not None:
            self._report_early(before)
        clock_of(self._recorder).reset()
        self._lookups.start_compile()
        self._recorder.on_compile_start(self._reporter.on_compile_start(_compile_id(event)))

    def _on_end(self, event: dict[str, Any]) -> None:
        self._recorder.on_compile_stop()
        ending = CompileOutcome.capture(self._recorder).add_record(
            _compile_id(event), event["name"] != BACKWARD
        )
        if event["name"] == AHEAD_OF_TIME:
            if CAPTURE_PHASES.issuperset(ending.phase_seconds):
                return
            self._expects_run_time_record = True
        if self._records.is_listening and RECORDS_ON.find(True):
            self._unconfirmed[threading.get_ident()] = ending
        else:
            self._reporter.report(ending.record, ending)

    def _on_record(self, record: Any, *_: Any, **__: Any) -> None:
        if self._expects_run_time_record and is_at_run_time(record) and not compile_id_of(record):
            self._expects_run_time_record, record = False, run_time_part_of(record)
            if record is None:
                return
        ending = self._unconfirmed.pop(threading.get_ident(), None)
        key = (compile_id_of(record), kind_of(record, {}) == "backward")
        if key in self._reported_early:
            self._reported_early.remove(key)
            return
        if ending is not None and not ending.belongs_to(key[0]):
            self._report_early(ending)
            ending = None
        self._reporter.report(record, ending or CompileOutcome.capture(self._recorder))

    def _report_unconfirmed(self, until: float) -> None:
        """Report compilations that ended before `until` without a record: the job turned records
        off, or replaced the patched function."""
        if os.getpid() != self._pid:
            # After a fork, the parent reports these compilations.
            self._unconfirmed.clear()
            self._pid = os.getpid()
        for thread, ending in list(self._unconfirmed.items()):
            if ending.end_monotonic <= until and self._unconfirmed.pop(thread, None) is not None:
                self._report_early(ending)

    def _report_early(self, ending: CompileOutcome) -> None:
        record = ending.record
        self._reported_early.append((record.compile_id, not record.is_forward))
        self._reporter.report(record, ending)


def _compile_id(event: dict[str, Any]) -> str:
    return str((event.get("args") or {}).get("compile_id") or "")
