"""The reports of a process that ran without the agent, from what torch's trace says; told by the code that tells live ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from compilewatch.cli.trace_reader import Entry
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.compilation_metrics import compile_id_of, kind_of
from compilewatch.sources.dynamo.compile_reporter import Ending, Teller
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.phase_timer import BACKWARD, ROOTS, PhaseClock
from compilewatch.sources.dynamo.recompile_limits import Latches
from compilewatch.sources.dynamo.typed_getattr import number, text
from compilewatch.sources.dynamo.user_frames import is_installed, user_place
from compilewatch.sources.inductor.cache_lookups import LOOKUPS, CacheLookups, Taken
from compilewatch.wire.messages import MAX_COMPILES, Compile, Report

WINDOW_SECONDS = 10.0
RECORDS = (
    "compilation_metrics",
    "bwd_compilation_metrics",
    "compilation_metrics_runtime",
    "bwd_compilation_metrics_runtime",
)
BREAK, VERSION, REASONS = "dynamo_graph_break_reason", "torch_version", "recompile_reasons"
IDENTIFYING_LINES = 16
_REMEMBERED = 1024
_APART_SECONDS = 2 * 86400.0
"""How far torch's own clock may lie from a line's time, which has no zone, before it is taken for damage."""
_BROKEN, _SKIPPED = "Graph break in user code at ", "Failed to handle graph break gracefully"
_REASON = re.compile(
    r"^Graph Break Reason: (?:Encountered graph break when attempting to trace [^\n]*\n\s*)?(.*?)(?:^User code traceback:|\Z)",
    re.M | re.S,
)
_FRAME = re.compile(r'^  File "(.+)", line (\d{1,9}), in (.+)$', re.M)
_CALLER = re.compile(r"Line: (\d{1,9}), Name: (.*), Filename: (.*)")


def wanted(data: dict[str, Any]) -> bool:
    """Whether the payload of an entry says something that is reported."""
    return "chromium_event" in data or _artifact(data) in (BREAK, VERSION, REASONS)


class TraceRecorder(Recorder):
    """Records at the times of the trace."""

    at = 0.0

    def moment(self) -> float:
        return self.at

    def compile_finished(self, compile: Compile) -> None:
        self._log.compile(compile)


class TracedThread:
    """The timers of a thread inside one compilation."""

    def __init__(self) -> None:
        self.clock = PhaseClock()
        self.lookups = CacheLookups()


class TracedProcess:
    """Takes the entries of one file in their order and keeps the windows in which something happened."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.started = 0.0
        self.clock = 0.0
        """The first time by torch's own clock, which has a year and a zone."""
        self.pid = 0
        self.rank: int | None = None
        self.versions: dict[str, str] = {}
        self._seen = 0
        self._digest = hashlib.sha256()
        self._recorder = TraceRecorder()
        self._recorder.start()
        self._breaks: list[SimpleNamespace] = []
        self._teller = Teller(
            self._recorder, Latches.begin(self._recorder), CacheLookups(), BreakList(self._breaks)
        )
        self._threads: OrderedDict[tuple[str, str], TracedThread] = OrderedDict()
        self._endings: OrderedDict[tuple[str, bool], tuple[dict[str, float], Taken]] = OrderedDict()
        self._frames: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._reasons: OrderedDict[str, list[str]] = OrderedDict()
        self._window: tuple[float, float] | None = None
        self._held = 0

    @property
    def chance(self) -> int:
        """80 bits that are the same whenever the same file is read."""
        return int.from_bytes(self._digest.digest()[:10], "big")

    def take(self, entry: Entry) -> None:
        """One entry; raises ValueError and the like where it is not as torch writes it."""
        self._seen += 1
        if self._seen <= IDENTIFYING_LINES:
            self._digest.update(f"{entry.pid} {entry.data} {entry.payload}".encode())
        if not self.pid:
            self.started, self.pid = entry.at, entry.pid
        self.rank = entry.rank if self.rank is None else self.rank
        if "chromium_event" in entry.data:
            self._event(json.loads(entry.payload), entry.at)
        elif _artifact(entry.data) == BREAK:
            self._broke(entry.payload)
        elif _artifact(entry.data) == REASONS:
            _remembered(self._reasons, _compile_id(entry.data), lambda: _reasons(entry.payload))
        elif _artifact(entry.data) == VERSION:
            self.versions.setdefault(
                "torch", text(SimpleNamespace(**json.loads(entry.payload)), "pytorch_version")[:64]
            )
        for name in RECORDS:
            if isinstance(entry.data.get(name), dict):
                self._record(entry, entry.data[name])

    def close(self) -> None:
        """The file is at its end."""
        if self._window is not None and self._held:
            report = self._recorder.close(len(self.reports) + 1, *self._window)
            report.gauges.compiling_for = None
            report.losses.truncated_events = self._recorder.truncated_events
            self.reports.append(report)
        self._held = 0

    def _event(self, event: dict[str, Any], logged: float) -> None:
        decoded = event.get("args") or {}
        compile_id, name, at = (
            str(decoded.get("compile_id") or ""),
            str(event["name"]),
            float(event["ts"]) / 1e6,
        )
        if not abs(at - logged) <= _APART_SECONDS:
            raise ValueError("an event far from its line")
        if not self.clock:
            self.started = self.clock = at
        if not compile_id:
            return  # of a thread that helps several compilations
        thread = _remembered(self._threads, (str(event.get("tid")), compile_id), TracedThread)
        is_root = name in ROOTS
        if event["ph"] == "B" and (is_root or thread.clock.running):
            if is_root and not thread.clock.running:
                thread.clock.reset()
                thread.lookups.begin()
            thread.clock.begin(name, at)
        elif event["ph"] == "E" and thread.clock.running:
            thread.clock.end(name, at)
            if name in LOOKUPS:
                thread.lookups.ended(event)
            if is_root and not thread.clock.running:
                ending = thread.clock.take(), thread.lookups.take()
                _remembered(self._endings, (compile_id, name == BACKWARD), lambda: ending)

    def _broke(self, payload: str) -> None:
        """What torch also says of a frame that it leaves eager altogether stands in the record of its compilation."""
        reason = _REASON.search(payload)
        if payload.startswith(_BROKEN) and reason and not reason[1].startswith(_SKIPPED):
            stack = payload[reason.end() :].split("Traceback (most recent call last)", 1)[0]
            frames = [
                SimpleNamespace(filename=file, lineno=int(line), name=name)
                for file, line, name in _FRAME.findall(stack)
            ]
            self._breaks.append(SimpleNamespace(reason=reason[1], user_stack=frames))

    def _record(self, entry: Entry, decoded: dict[str, Any]) -> None:
        record = SimpleNamespace(**decoded)
        compile_id = record.compile_id = compile_id_of(record)[:64]
        record.recompile_reasons = self._reasons.pop(compile_id, None)
        self._name(record, compile_id)
        for name, field in (
            ("torch", "pytorch_version"),
            ("python", "python_version"),
            ("cuda", "cuda_version"),
            ("triton", "triton_version"),
        ):
            if text(record, field):
                self.versions.setdefault(name, (text(record, field).split() or [""])[0][:64])
        at = _ended(record, entry.at)
        self.started = min(self.started, at)
        self._recorder.at = at
        self._open(at)
        phases, lookups = self._endings.pop(
            (compile_id, kind_of(record, {}) == "backward"), ({}, Taken([], {}))
        )
        self._teller.tell(record, Ending(0.0, at, {}, phases, False, lookups))
        self._breaks.clear()
        self._held += 1

    def _name(self, record: Any, compile_id: str) -> None:
        """A compilation that is refused at the limit names no frame, but its number is the frame's; a frame of a library has a caller."""
        frame_id = compile_id.rpartition("/")[0]
        if not text(record, "co_name"):
            if kind_of(record, {}) in ("first", "recompile"):
                vars(record).update(self._frames.get(frame_id, {}))
            return
        if is_installed(text(record, "co_filename")):
            record.caller = user_place(_callers(getattr(record, "stack_trace", None)))
        names = ("co_name", "co_filename", "co_firstlineno", "caller")
        self._frames.pop(frame_id, None)
        _remembered(
            self._frames,
            frame_id,
            lambda: {name: getattr(record, name) for name in names if hasattr(record, name)},
        )

    def _open(self, at: float) -> None:
        """Windows follow one another; one that is full ends early."""
        if self._window is None or at >= self._window[1]:
            self.close()
            start = at // WINDOW_SECONDS * WINDOW_SECONDS
            self._window = start, start + WINDOW_SECONDS
        elif self._held >= MAX_COMPILES:
            (start, end), full = self._window, max(at, self._window[0])
            self._window = start, full
            self.close()
            self._window = full, end


def _artifact(data: dict[str, Any]) -> str:
    artifact = data.get("artifact")
    return str(artifact.get("name")) if isinstance(artifact, dict) else ""


def _compile_id(data: dict[str, Any]) -> str:
    return f"{data.get('frame_id')}/{data.get('frame_compile_id')}"


def _reasons(payload: str) -> list[str]:
    """A single reason as it is, several as a list."""
    try:
        decoded = json.loads(payload)
    except ValueError:
        return [payload]
    return decoded if isinstance(decoded, list) else [payload]


def _remembered(table: OrderedDict[Any, Any], key: Any, make: Any) -> Any:
    """What stands under the key, made if there is none; the oldest goes when there are too many."""
    if key not in table:
        table[key] = make()
        if len(table) > _REMEMBERED:
            table.popitem(last=False)
    return table[key]


def _ended(record: Any, logged: float) -> float:
    """When the compilation was over, by torch's own clock where the record has it."""
    start, length = (
        number(record, "start_time"),
        number(record, "entire_frame_compile_time_s") or 0.0,
    )
    end = number(record, "end_time_us")
    at = end / 1e6 if end is not None else start + length if start is not None else logged
    return at if abs(at - logged) <= _APART_SECONDS else logged


def _callers(stack: Any) -> Iterable[tuple[str, int, str]]:
    """The record's stack, innermost first."""
    lines = stack if isinstance(stack, list) else []
    found = (_CALLER.fullmatch(line) for line in reversed(lines) if isinstance(line, str))
    return ((one[3], int(one[1]), one[2]) for one in found if one)
