"""Trace converter: builds the reports of one process from torch's trace, with the same code as live
reports.
"""

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
from compilewatch.sources.dynamo.compile_reporter import CompileOutcome, CompileReporter
from compilewatch.sources.dynamo.graph_breaks import BreakList
from compilewatch.sources.dynamo.phase_timer import BACKWARD, ROOTS, PhaseClock
from compilewatch.sources.dynamo.recompile_limits import EagerFrames
from compilewatch.sources.dynamo.typed_getattr import get_number, get_text
from compilewatch.sources.dynamo.user_frames import find_user_place, is_installed
from compilewatch.sources.inductor.cache_lookups import LOOKUPS, CacheLookups, LookupResult
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
_MAX_REMEMBERED = 1024
_MAX_SKEW_SECONDS = 2 * 86400.0
"""Largest difference in seconds between torch's clock and a line's time, which has no time zone;
more counts as damage.
"""
_BREAK_PREFIX, _SKIPPED = "Graph break in user code at ", "Failed to handle graph break gracefully"
_REASON = re.compile(
    r"^Graph Break Reason: (?:Encountered graph break when attempting to trace [^\n]*\n\s*)?"
    r"(.*?)(?:^User code traceback:|\Z)",
    re.M | re.S,
)
_FRAME = re.compile(r'^  File "(.+)", line (\d{1,9}), in (.+)$', re.M)
_CALLER = re.compile(r"Line: (\d{1,9}), Name: (.*), Filename: (.*)")


def should_import(data: dict[str, Any]) -> bool:
    """Returns whether the converter uses the payload of the entry."""
    return "chromium_event" in data or _artifact(data) in (BREAK, VERSION, REASONS)


class TraceRecorder(Recorder):
    """A recorder with the times of the trace instead of the clock."""

    at = 0.0

    def event_time(self) -> float:
        return self.at

    def record_compile(self, compile: Compile) -> None:
        self._log.add_compile(compile)


class TracedThread:
    """The timers of one thread in one compilation."""

    def __init__(self) -> None:
        self.clock = PhaseClock()
        self.lookups = CacheLookups()


class TracedProcess:
    """Collects the entries of one file in order and keeps the windows with events."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.started = 0.0
        self.clock = 0.0
        """The first time of torch's own clock, which has a year and a time zone."""
        self.pid = 0
        self.rank: int | None = None
        self.versions: dict[str, str] = {}
        self._entry_count = 0
        self._digest = hashlib.sha256()
        self._recorder = TraceRecorder()
        self._recorder.start()
        self._breaks: list[SimpleNamespace] = []
        self._teller = CompileReporter(
            self._recorder,
            EagerFrames.begin(self._recorder),
            CacheLookups(),
            BreakList(self._breaks),
        )
        self._threads: OrderedDict[tuple[str, str], TracedThread] = OrderedDict()
        self._outcomes: OrderedDict[tuple[str, bool], tuple[dict[str, float], LookupResult]] = (
            OrderedDict()
        )
        self._frames: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._reasons: OrderedDict[str, list[str]] = OrderedDict()
        self._window: tuple[float, float] | None = None
        self._event_count = 0

    @property
    def random_bits(self) -> int:
        """80 bits that are equal whenever the same file is read."""
        return int.from_bytes(self._digest.digest()[:10], "big")

    def add_entry(self, entry: Entry) -> None:
        """Adds one entry; raises ValueError and similar errors if its format is unknown."""
        self._entry_count += 1
        if self._entry_count <= IDENTIFYING_LINES:
            self._digest.update(f"{entry.pid} {entry.data} {entry.payload}".encode())
        if not self.pid:
            self.started, self.pid = entry.at, entry.pid
        self.rank = entry.rank if self.rank is None else self.rank
        if "chromium_event" in entry.data:
            self._add_event(json.loads(entry.payload), entry.at)
        elif _artifact(entry.data) == BREAK:
            self._add_graph_break(entry.payload)
        elif _artifact(entry.data) == REASONS:
            _get_or_create(self._reasons, _compile_id(entry.data), lambda: _reasons(entry.payload))
        elif _artifact(entry.data) == VERSION:
            self.versions.setdefault(
                "torch",
                get_text(SimpleNamespace(**json.loads(entry.payload)), "pytorch_version")[:64],
            )
        for name in RECORDS:
            if isinstance(entry.data.get(name), dict):
                self._add_record(entry, entry.data[name])

    def close(self) -> None:
        """Closes the last window at the end of the file."""
        if self._window is not None and self._event_count:
            report = self._recorder.rotate(len(self.reports) + 1, *self._window)
            report.gauges.compiling_for = None
            report.losses.truncated_events = self._recorder.truncated_event_count
            self.reports.append(report)
        self._event_count = 0

    def _add_event(self, event: dict[str, Any], logged: float) -> None:
        decoded = event.get("args") or {}
        compile_id, name, at = (
            str(decoded.get("compile_id") or ""),
            str(event["name"]),
            float(event["ts"]) / 1e6,
        )
        if not abs(at - logged) <= _MAX_SKEW_SECONDS:
            raise ValueError("the time of the event is far from the time of its line")
        if not self.clock:
            self.started = self.clock = at
        if not compile_id:
            return  # of a thread that serves several compilations
        key = (str(event.get("tid")), compile_id)
        thread: TracedThread = _get_or_create(self._threads, key, TracedThread)
        is_root = name in ROOTS
        if event["ph"] == "B" and (is_root or thread.clock.is_running):
            if is_root and not thread.clock.is_running:
                thread.clock.reset()
                thread.lookups.start_compile()
            thread.clock.begin(name, at)
        elif event["ph"] == "E" and thread.clock.is_running:
            thread.clock.end(name, at)
            if name in LOOKUPS:
                thread.lookups.on_timer_end(event)
            if is_root and not thread.clock.is_running:
                ending = thread.clock.collect(), thread.lookups.collect()
                _get_or_create(self._outcomes, (compile_id, name == BACKWARD), lambda: ending)

    def _add_graph_break(self, payload: str) -> None:
        """Records a graph break.

        Skips those of frames that torch leaves eager: their compilation records contain the reason.
        """
        reason = _REASON.search(payload)
        if payload.startswith(_BREAK_PREFIX) and reason and not reason[1].startswith(_SKIPPED):
            stack = payload[reason.end() :].split("Traceback (most recent call last)", 1)[0]
            frames = [
                SimpleNamespace(filename=file, lineno=int(line), name=name)
                for file, line, name in _FRAME.findall(stack)
            ]
            self._breaks.append(SimpleNamespace(reason=reason[1], user_stack=frames))

    def _add_record(self, entry: Entry, decoded: dict[str, Any]) -> None:
        record = SimpleNamespace(**decoded)
        compile_id = record.compile_id = compile_id_of(record)[:64]
        record.recompile_reasons = self._reasons.pop(compile_id, None)
        self._complete_name(record, compile_id)
        for name, field in (
            ("torch", "pytorch_version"),
            ("python", "python_version"),
            ("cuda", "cuda_version"),
            ("triton", "triton_version"),
        ):
            if get_text(record, field):
                self.versions.setdefault(name, (get_text(record, field).split() or [""])[0][:64])
        at = _end_time(record, entry.at)
        self.started = min(self.started, at)
        self._recorder.at = at
        self._open_window(at)
        phases, lookups = self._outcomes.pop(
            (compile_id, kind_of(record, {}) == "backward"), ({}, LookupResult([], {}))
        )
        self._teller.report(record, CompileOutcome(0.0, at, {}, phases, False, lookups))
        self._breaks.clear()
        self._event_count += 1

    def _complete_name(self, record: Any, compile_id: str) -> None:
        """Completes the frame's name.

        A compilation refused at the recompile limit names no frame, but its id contains the frame's
        number. A frame of a library gets its caller in user code.
        """
        frame_id = compile_id.rpartition("/")[0]
        if not get_text(record, "co_name"):
            if kind_of(record, {}) in ("first", "recompile"):
                vars(record).update(self._frames.get(frame_id, {}))
            return
        if is_installed(get_text(record, "co_filename")):
            record.caller = find_user_place(_callers(getattr(record, "stack_trace", None)))
        names = ("co_name", "co_filename", "co_firstlineno", "caller")
        self._frames.pop(frame_id, None)
        _get_or_create(
            self._frames,
            frame_id,
            lambda: {name: getattr(record, name) for name in names if hasattr(record, name)},
        )

    def _open_window(self, at: float) -> None:
        """Opens the window of this time; a full window ends early."""
        if self._window is None or at >= self._window[1]:
            self.close()
            start = at // WINDOW_SECONDS * WINDOW_SECONDS
            self._window = start, start + WINDOW_SECONDS
        elif self._event_count >= MAX_COMPILES:
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
    """Returns a single reason as a list, and several as they are."""
    try:
        decoded = json.loads(payload)
    except ValueError:
        return [payload]
    return decoded if isinstance(decoded, list) else [payload]


def _get_or_create(table: OrderedDict[Any, Any], key: Any, make: Any) -> Any:
    """Returns the value of the key and creates it if missing; evicts the oldest above the limit."""
    if key not in table:
        table[key] = make()
        if len(table) > _MAX_REMEMBERED:
            table.popitem(last=False)
    return table[key]


def _end_time(record: Any, logged: float) -> float:
    """Returns the end of the compilation by torch's own clock if the record has it."""
    start, length = (
        get_number(record, "start_time"),
        get_number(record, "entire_frame_compile_time_s") or 0.0,
    )
    end = get_number(record, "end_time_us")
    at = end / 1e6 if end is not None else start + length if start is not None else logged
    return at if abs(at - logged) <= _MAX_SKEW_SECONDS else logged


def _callers(stack: Any) -> Iterable[tuple[str, int, str]]:
    """Yields the record's stack, innermost frame first."""
    lines = stack if isinstance(stack, list) else []
    matches = (_CALLER.fullmatch(line) for line in reversed(lines) if isinstance(line, str))
    return ((match[3], int(match[1]), match[2]) for match in matches if match)
