"""The cold start of this process: from its start over the imports of torch and the compilations to the first calls that ran what was
compiled, and to `ready()`, with what no stage explains."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from compilewatch.identity.process_start import process_started
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.import_hook import IMPORTED
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
LATE_INIT = 600.0
"""Seconds: where `init` comes later, as in a notebook, what was before it is no part of a start, which then begins with `init`."""
MAX_COMPILES, MAX_MARKS = 10_000, 32

_seen: set[int] = set()
"""Processes whose start was told: an agent that is switched on again has none, a forked child has its own."""


class Stretch(NamedTuple):
    """From one moment to another, in Unix seconds."""

    name: str
    start: float
    end: float


class ColdStart:
    """Watches the reports of an instance go by until the start is over, on the agent's thread."""

    def __init__(self, init: float) -> None:
        self._over = os.getpid() in _seen
        _seen.add(os.getpid())
        started = process_started()
        self._began = started if init - started < LATE_INIT else init
        self._init = init
        self._compiles: list[Compile] = []
        self._marks: dict[str, float] = {}
        self._served: float | None = None
        self._waited_until: list[float] = []
        self._told_first_call = False

    def look(self, recorder: Recorder) -> None:
        """Notes when a call was first seen to run compiled."""
        if self._over:
            return
        self._waited_until = recorder.compiling.waited_until
        if self._served is None and recorder.settled():
            self._served = time.time()

    def complete(self, report: Report) -> None:
        """Adds the start to the report in which its end becomes known: at the first compiled call, and once more at `ready`."""
        if self._over:
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
        first_call = self._first_call()
        if ready is not None:
            self._over = True
            report.facts.append(self._fact(ready, READY))
        elif first_call is not None and not self._told_first_call:
            self._told_first_call = True
            report.facts.append(self._fact(first_call, FIRST_CALL))

    def _first_call(self) -> float | None:
        """The end of the call that compiled last before one was seen that compiled nothing."""
        if self._served is None:
            return None
        compiled = max((one.at for one in self._compiles if one.at <= self._served), default=None)
        if compiled is None:
            return None
        return next(
            (end for end in sorted(self._waited_until) if compiled <= end <= self._served), compiled
        )

    def _fact(self, end: float, until: str) -> Fact:
        compiles = [one for one in self._compiles if one.at <= end]
        stretches = [
            Stretch(BEFORE_INIT, self._began, self._init),
            *_imports(),
            *_compilations(compiles),
        ]
        stretches += _first_runs(compiles, self._waited_until)
        stages, unaccounted = stages_of(self._began, end, stretches, self._marks)
        phases: dict[str, float] = {}
        for one in compiles:
            for phase, seconds in one.seconds.items():
                if phase != "total":
                    phases[phase] = round(phases.get(phase, 0.0) + seconds, 6)
        total = round(end - self._began, 6)
        said = {
            "began": self._began,
            "total": total,
            "until": until,
            "stages": stages,
            "phases": phases,
            "unaccounted": unaccounted,
        }
        return Fact("mark", end, {"name": COLD_START, **said})


def _imports() -> list[Stretch]:
    return [
        Stretch(stage, *IMPORTED[module])
        for module, stage in ((TORCH, IMPORT), (DYNAMO, IMPORT_DYNAMO))
        if module in IMPORTED
    ]


def _first_runs(compiles: Iterable[Compile], ends: Iterable[float]) -> list[Stretch]:
    """What calls that compiled did after it, up to their ends: they ran for the first time what was compiled for them."""
    found, before = [], 0.0
    compiled = sorted(one.at for one in compiles)
    for end in sorted(ends):
        last = max((at for at in compiled if before < at <= end), default=None)
        if last is not None:
            found.append(Stretch(FIRST_RUN, last, end))
        before = end
    return found


def _compilations(compiles: Iterable[Compile]) -> list[Stretch]:
    return [Stretch(_kind(one), one.at - one.seconds.get("total", 0.0), one.at) for one in compiles]


def _kind(compile: Compile) -> str:
    return {"autotune": AUTOTUNE, "cuda_graph": GRAPHS}.get(compile.kind, COMPILE)


def stages_of(
    began: float, end: float, stretches: Iterable[Stretch], marks: dict[str, float]
) -> tuple[dict[str, list[float]], float]:
    """Each stage's begin and its seconds, both counted from the start, in order; and the seconds that no stage covers.

    Where stretches overlap, the first in the list has the time. A mark explains what lies between it and the last thing known before."""
    known = [Stretch(name, max(start, began), min(stop, end)) for name, start, stop in stretches]
    known = [stretch for stretch in known if stretch.end > stretch.start]
    inside = {at: name for name, at in marks.items() if began < at <= end}
    edges = sorted(
        {began, end, *inside, *(one.start for one in known), *(one.end for one in known)}
    )
    stages: dict[str, list[float]] = {}
    unaccounted = 0.0
    for start, stop in pairwise(edges):
        name: Any = next(
            (one.name for one in known if one.start <= start and stop <= one.end), inside.get(stop)
        )
        if name is None:
            unaccounted += stop - start
        else:
            stage = stages.setdefault(name, [round(start - began, 6), 0.0])
            stage[1] = round(stage[1] + stop - start, 6)
    return stages, round(unaccounted, 6)
