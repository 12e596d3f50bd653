"""Compilations: torch's record of each one, with the begin and end of its timers for the live start and the phases."""

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
from compilewatch.sources import Answer, Source
from compilewatch.sources.dynamo.compilation_metrics import (
    at_run_time_alone,
    compile_id_of,
    is_at_run_time,
    kind_of,
)
from compilewatch.sources.dynamo.compile_reporter import Ending, Teller
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.phase_timer import (
    AHEAD,
    BACKWARD,
    CAPTURE,
    PHASES,
    ROOTS,
    clock_of,
)
from compilewatch.sources.dynamo.recompile_limits import Latches
from compilewatch.sources.function_patch import Binding
from compilewatch.sources.inductor.cache_lookups import LOOKUPS, CacheLookups

PATIENCE_SECONDS = 1.0
"""Torch's record follows the end of the timers at once, in the same thread; after so long it does not come any more."""


class Compilations(Source):
    """Binds torch's two compile-time callbacks and pairs what they say: each compilation is told once, by its record if there is one."""

    name = "compilations"
    module = "torch._dynamo.utils"

    def __init__(self) -> None:
        self._bound: list[Binding] = []
        self._lists: list[str] = []
        self._unconfirmed: dict[int, Ending] = {}
        self._pid = os.getpid()
        self._told_early: deque[tuple[str, bool]] = deque(maxlen=64)
        self._ahead = False

    def install(self, recorder: Recorder) -> Answer:
        if self._bound:
            return self._answer()
        self._recorder = recorder
        self._lists = problems_of(COUNTERS, BREAKS)
        counters = {} if COUNTERS.problem() else COUNTERS.find()
        breaks = [] if BREAKS.problem() else BREAKS.find()
        self._lookups = CacheLookups.of(recorder)
        self._lookups.count_in(counters)
        self._teller = Teller(recorder, Latches.begin(recorder), self._lookups, BreakList(breaks))
        self._records = Binding(RECORDS, self._on_record, recorder)
        self._events = Binding(EVENTS, self._on_event, recorder)
        self._bound = [self._records, self._events]
        for binding in self._bound:
            binding.bind()
        return self._answer()

    def poll(self, recorder: Recorder) -> Answer | None:
        """Tells what ended and got no record, and what has become of the bindings."""
        self._tell_unconfirmed(time.monotonic() - PATIENCE_SECONDS)
        return self._answer() if self._bound else None

    def uninstall(self) -> None:
        bound, self._bound, self._lists = self._bound, [], []
        for binding in bound:
            binding.unbind()
        if bound:
            self._tell_unconfirmed(time.monotonic())

    def _answer(self) -> Answer:
        problems = [binding.problem for binding in self._bound if binding.problem]
        problems += self._lists + problems_of(STATIC_FIRST, AUTOMATIC)
        if not any(binding.listens for binding in self._bound):
            return "no", "; ".join(problems)
        return ("partly", "; ".join(problems)) if problems else ("yes", "")

    def _on_event(self, event: dict[str, Any], *_: Any, **__: Any) -> None:
        name = event["name"]
        if PHASES[name] is None:
            return  # most are
        at, clock, is_root = event["ts"] / 1e6, clock_of(self._recorder), name in ROOTS
        if not is_root and not clock.running:
            return
        if event["ph"] == "B":
            if is_root and not clock.running:
                self._began(event)
            clock.begin(name, at)
        elif event["ph"] == "E":
            clock.end(name, at)
            if name in LOOKUPS:
                self._lookups.ended(event)
            if is_root and not clock.running:
                self._ended(event)

    def _began(self, event: dict[str, Any]) -> None:
        before = self._unconfirmed.pop(threading.get_ident(), None)
        if before is not None:
            self._tell_early(before)
        clock_of(self._recorder).reset()
        self._lookups.begin()
        self._recorder.compile_started(self._teller.began(_compile_id(event)))

    def _ended(self, event: dict[str, Any]) -> None:
        self._recorder.compile_stopped()
        ending = Ending.now(self._recorder).of_event(_compile_id(event), event["name"] != BACKWARD)
        if event["name"] == AHEAD:
            if CAPTURE.issuperset(ending.phases):
                return
            self._ahead = True
        if self._records.listens and RECORDS_ON.find(True):
            self._unconfirmed[threading.get_ident()] = ending
        else:
            self._teller.tell(ending.record, ending)

    def _on_record(self, record: Any, *_: Any, **__: Any) -> None:
        if self._ahead and is_at_run_time(record) and not compile_id_of(record):
            self._ahead, record = False, at_run_time_alone(record)
            if record is None:
                return
        ending = self._unconfirmed.pop(threading.get_ident(), None)
        told = (compile_id_of(record), kind_of(record, {}) == "backward")
        if told in self._told_early:
            self._told_early.remove(told)
            return
        if ending is not None and not ending.belongs_to(told[0]):
            self._tell_early(ending)
            ending = None
        self._teller.tell(record, ending or Ending.now(self._recorder))

    def _tell_unconfirmed(self, until: float) -> None:
        """What ended by then and got no record: the job switched records off, or took our name away."""
        if os.getpid() != self._pid:
            # What a forked child finds here is its parent's to tell.
            self._unconfirmed.clear()
            self._pid = os.getpid()
        for thread, ending in list(self._unconfirmed.items()):
            if ending.ended <= until and self._unconfirmed.pop(thread, None) is not None:
                self._tell_early(ending)

    def _tell_early(self, ending: Ending) -> None:
        record = ending.record
        self._told_early.append((record.compile_id, not record.is_forward))
        self._teller.tell(record, ending)


def _compile_id(event: dict[str, Any]) -> str:
    return str((event.get("args") or {}).get("compile_id") or "")
