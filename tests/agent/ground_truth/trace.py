"""Torch's own account of a process: its TORCH_TRACE file, read by tlparse; these tests have no
other reader of the trace."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOTS = ("entire_frame_compile", "entire_backward_compile")
CACHES = {"fx_graph_cache_": "fx", "aotautograd_cache_": "aot"}
WORST_FIRST = ("miss", "bypass", "hit")

Entry = tuple[dict[str, Any], str]
"""One entry of a trace, and its payload."""


@dataclass
class Trace:
    """The parts of a trace that the comparison needs, as tlparse wrote them."""

    started: Counter[str] = field(default_factory=Counter)
    """How often each compile id began (a restarted attempt is not counted)."""
    forwards: Counter[str] = field(default_factory=Counter)
    backwards: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """Compile id to the type of the failure, for the records that have a failure."""
    limits: int = 0
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """Compile id to torch's reasons for compiling it again."""
    breaks: Counter[str] = field(default_factory=Counter)
    """First lines of the graph breaks."""
    caches: Counter[str] = field(default_factory=Counter)
    """`fx hit` and so on, once per record: a miss of any part makes the whole record a miss."""
    seconds: float = 0.0
    """Time between the outermost begins and ends of compilations."""


def traces_read(folder: Path, into: Path) -> list[Trace]:
    """The traces in a folder, one per process, by rank; a file with only a header belongs to a
    process that compiled nothing."""
    found = []
    for number, log in enumerate(sorted(folder.glob("dedicated_log_torch_trace_*.log"))):
        out = into / str(number)
        _tlparse(log, out)
        if (out / "raw.jsonl").exists():
            found.append(_read(out))
    return found


def _tlparse(log: Path, out: Path) -> None:
    command = [
        str(Path(sys.executable).parent / "tlparse"),
        "--no-browser",
        "-o",
        str(out),
        str(log),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"tlparse on {log}: {done.stderr[-2000:]}"


def _read(out: Path) -> Trace:
    entries = [json.loads(line) for line in (out / "raw.jsonl").read_text().splitlines()]
    told = (
        (
            entry,
            (out / entry["payload_filename"]).read_text() if "payload_filename" in entry else "",
        )
        for entry in entries
    )
    return account(told, json.loads((out / "chromium_events.json").read_text()))


def account(entries: Iterable[Entry], events: list[dict[str, Any]]) -> Trace:
    """The trace that follows from the entries and from the begins and ends of torch's timers."""
    trace = Trace()
    answers: dict[str, set[str]] = {}
    for entry, payload in entries:
        compile_id = f"{entry.get('frame_id')}/{entry.get('frame_compile_id')}"
        if "dynamo_start" in entry and not entry.get("attempt"):
            trace.started[compile_id] += 1
        artifact = (entry.get("artifact") or {}).get("name", "")
        for prefix, cache in CACHES.items():
            answer = artifact.removeprefix(prefix)
            if answer in WORST_FIRST:
                answers.setdefault(compile_id, set()).add(f"{cache} {answer}")
        if artifact == "recompile_reasons":
            trace.reasons[compile_id] = _reasons(payload)
        elif artifact == "dynamo_graph_break_reason":
            trace.breaks[_first_line(payload)] += 1
        elif "compilation_metrics" in entry:
            _record(trace, compile_id, entry["compilation_metrics"])
            _answered(trace, answers.pop(compile_id, set()))
        elif "bwd_compilation_metrics" in entry:
            trace.backwards[compile_id] += 1
            _answered(trace, answers.pop(compile_id, set()))
    trace.seconds = _seconds(events)
    return trace


def _record(trace: Trace, compile_id: str, record: dict[str, Any]) -> None:
    trace.forwards[compile_id] += 1
    if record.get("fail_type"):
        trace.failures[compile_id] = record["fail_type"]
        trace.limits += (
            "limit" in (record.get("fail_reason") or "") and record["fail_type"] == "Unsupported"
        )


def _answered(trace: Trace, answers: set[str]) -> None:
    for cache in CACHES.values():
        worst = next((answer for answer in WORST_FIRST if f"{cache} {answer}" in answers), None)
        if worst:
            trace.caches[f"{cache} {worst}"] += 1


def _reasons(payload: str) -> list[str]:
    """Torch writes a single reason as text, and several as a list."""
    try:
        several = json.loads(payload)
    except ValueError:
        return [payload]
    return several if isinstance(several, list) else [payload]


def _first_line(payload: str) -> str:
    lines = [line.strip() for line in payload.splitlines()]
    return next((line for line in lines if line), "")


def _seconds(events: list[dict[str, Any]]) -> float:
    """The time of outermost compilations, from torch's timers of one thread each."""
    total, opened = 0.0, {}
    for event in events:
        if event["name"] not in ROOTS:
            continue
        thread = opened.setdefault(event["tid"], [])
        if event["ph"] == "B":
            thread.append(event["ts"])
        elif event["ph"] == "E" and thread:
            begun = thread.pop()
            total += 0.0 if thread else (event["ts"] - begun) / 1e6
    return total
