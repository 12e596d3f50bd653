"""Cold start: the stages from process start to the first compiled call and to `ready()`.

The stages are the imports of torch, the compilations and the first runs of compiled code. Time
that no stage covers is reported as unaccounted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from compilewatch.identity.process_start import process_start_time
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.import_hook import IMPORT_TIMES
from compilewatch.wire.messages import (
    COLD_START,
    COLD_START_ENDS,
    COLD_START_STAGES,
    OWN_MARKS,
    Compile,
    Fact,
    Report,
)

BEFORE_INIT, IMPORT, COMPILE, AUTOTUNE, GRAPHS, IMPORT_DYNAMO, FIRST_RUN = COLD_START_STAGES
FIRST_CALL, READY = COLD_START_ENDS
TORCH, DYNAMO = "torch", "torch._dynamo"
LATE_INIT_SECONDS = 600.0
"""If `init` runs later than this after the process start, as in a notebook, the cold start
begins at `init`."""
MAX_COMPILES, MAX_MARKS = 10_000, 32

_REPORTED_PIDS: set[int] = set()
"""Processes whose cold start was reported. A restarted agent has no second cold start; a forked
child has its own."""


class Stage(NamedTuple):
    """A stage from one time to another, in Unix seconds."""

    name: str
    start: float
    end: float


class ColdStart:
    """Reads the reports of an instance until the cold start is over. Runs on the agent's thread."""

    def __init__(self, init: float) -> None:
        self._is_over = os.getpid() in _REPORTED_PIDS
        _REPORTED_PIDS.add(os.getpid())
        process_start = process_start_time()
        self._start = process_start if init - process_start < LATE_INIT_SECONDS else init
        self._init_time = init
        self._compiles: list[Compile] = []
        self._marks: dict[str, float] = {}
        self._served_at: float | None = None
        self._wait_end_times: list[float] = []
        self._has_reported_first_call = False

    def record_first_served(self, recorder: Recorder) -> None:
        """Records when a call first ran compiled code."""
        if self._is_over:
            return
        self._wait_end_times = recorder.active_compiles.wait_end_times
        if self._served_at is None and recorder.has_settled():
            self._served_at = time.time()

    def add_to_report(self, report: Report) -> None:
        """Adds the cold start to the report that contains its end.

        The cold start ends at the first compiled call, and once more at `ready`."""
        if self._is_over:
            return
        self._compiles += report.compiles[: MAX_COMPILES - len(self._compiles)]
        ready = None
        for fact in report.facts:
            if fact.kind == "ready":
                ready = fact.at
            elif (
                fact.kind == "mark"
                and fact.data.get("name") not in OWN_MARKS
                and len(self._marks) < MAX_MARKS
            ):
                self._marks.setdefault(str(fact.data.get("name", "")), fact.at)
        first_call = self._find_first_call_end()
        if ready is not None:
            self._is_over = True
            report.facts.append(self._create_fact(ready, READY))
        elif first_call is not None and not self._has_reported_first_call:
            self._has_reported_first_call = True
            report.facts.append(self._create_fact(first_call, FIRST_CALL))

    def _find_first_call_end(self) -> float | None:
        """The end of the last call that compiled before a call was served without compiling."""
        if self._served_at is None:
            return None
        last_compile = max(
            (compile.at for compile in self._compiles if compile.at <= self._served_at),
            default=None,
        )
        if last_compile is None:
            return None
        return next(
            (end for end in sorted(self._wait_end_times) if last_compile <= end <= self._served_at),
            last_compile,
        )

    def _create_fact(self, end: float, until: str) -> Fact:
        compiles = [compile for compile in self._compiles if compile.at <= end]
        intervals = [
            Stage(BEFORE_INIT, self._start, self._init_time),
            *_list_imports(),
            *_list_compilations(compiles),
        ]
        intervals += _list_first_runs(compiles, self._wait_end_times)
        stages, unaccounted = stages_of(self._start, end, intervals, self._marks)
        phases: dict[str, float] = {}
        for compile in compiles:
            for phase, seconds in compile.seconds.items():
                if phase != "total":
                    phases[phase] = round(phases.get(phase, 0.0) + seconds, 6)
        total = round(end - self._start, 6)
        summary = {
            "began": self._start,
            "total": total,
            "until": until,
            "stages": stages,
            "phases": phases,
            "unaccounted": unaccounted,
        }
        return Fact("mark", end, {"name": COLD_START, **summary})


def _list_imports() -> list[Stage]:
    return [
        Stage(stage, *IMPORT_TIMES[module])
        for module, stage in ((TORCH, IMPORT), (DYNAMO, IMPORT_DYNAMO))
        if module in IMPORT_TIMES
    ]


def _list_first_runs(compiles: Iterable[Compile], ends: Iterable[float]) -> list[Stage]:
    """Time from the last compilation in a call to the end of that call: the first run of the
    compiled code."""
    first_runs, previous_end = [], 0.0
    compile_times = sorted(compile.at for compile in compiles)
    for end in sorted(ends):
        last_compile = max((at for at in compile_times if previous_end < at <= end), default=None)
        if last_compile is not None:
            first_runs.append(Stage(FIRST_RUN, last_compile, end))
        previous_end = end
    return first_runs


def _list_compilations(compiles: Iterable[Compile]) -> list[Stage]:
    return [
        Stage(_stage_name(compile), compile.at - compile.seconds.get("total", 0.0), compile.at)
        for compile in compiles
    ]


def _stage_name(compile: Compile) -> str:
    return {"autotune": AUTOTUNE, "cuda_graph": GRAPHS}.get(compile.kind, COMPILE)


def stages_of(
    start_time: float, end: float, intervals: Iterable[Stage], marks: dict[str, float]
) -> tuple[dict[str, list[float]], float]:
    """Start and duration of each stage, relative to the start, and the unaccounted seconds.

    Where stages overlap, the first one in the list gets the time. A mark explains the time
    between the mark and the last known stage before it."""
    clipped = [
        Stage(name, max(start, start_time), min(stop, end)) for name, start, stop in intervals
    ]
    clipped = [interval for interval in clipped if interval.end > interval.start]
    marks_by_time = {at: name for name, at in marks.items() if start_time < at <= end}
    edges = sorted(
        {
            start_time,
            end,
            *marks_by_time,
            *(interval.start for interval in clipped),
            *(interval.end for interval in clipped),
        }
    )
    stages: dict[str, list[float]] = {}
    unaccounted = 0.0
    for start, stop in pairwise(edges):
        name: Any = next(
            (
                interval.name
                for interval in clipped
                if interval.start <= start and stop <= interval.end
            ),
            marks_by_time.get(stop),
        )
        if name is None:
            unaccounted += stop - start
        else:
            stage = stages.setdefault(name, [round(start - start_time, 6), 0.0])
            stage[1] = round(stage[1] + stop - start, 6)
    return stages, round(unaccounted, 6)
