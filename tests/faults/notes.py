"""Notes of the senders, as notes of windows: from jobs with an agent, and from senders without an
agent."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.tally import CALLS, EAGER, SKETCHES, Counts, Note, Notes, sketch_counts


def notes_read(folder: Path) -> Notes:
    """All notes in the folder."""
    notes: Notes = {}
    for path in sorted(folder.glob("*.ledger")):
        version = path.name.removesuffix(".ledger").partition(".")[2]
        for entry in _entries(path, "window"):
            report = entry["report"]
            notes[entry["instance"], report["seq"][0], report["seq"][1]] = note_of(report, version)
    for path in sorted(folder.glob("*.notes")):
        for entry in _entries(path, "window"):
            regions = {place: Counter(counts) for place, counts in entry["regions"].items()}
            times = round(entry["start"]), round(entry["end"])
            note = Note(
                entry["version"], *times, regions, Counter(entry["process"]), entry["compiles"]
            )
            notes[entry["instance"], entry["seq"][0], entry["seq"][1]] = note
    return notes


def acknowledged_read(folder: Path) -> set[tuple[str, int, int]]:
    """The windows that the dashboard acknowledged to the senders without an agent."""
    entries = (entry for path in folder.glob("*.notes") for entry in _entries(path, "acked"))
    return {(entry["instance"], *entry["seq"]) for entry in entries}


def note_of(report: dict[str, Any], version: str) -> Note:
    """The note of a report in wire format, which omits zeros."""
    start, end = (round(moment * 1000) for moment in report["window"])
    note = Note(version, start, end)
    for region in report.get("regions", []):
        place = f"{region['name']}|{region.get('bucket', '')}"
        note.regions.setdefault(place, Counter()).update(_region_counts(region))
    for compiled in report.get("compiles", []):
        note.compiles[compiled["id"]] = math.floor(compiled["at"] * 1000)
        note.process.update(compile_counts(compiled))
    return note


def compile_counts(compiled: dict[str, Any]) -> Counts:
    """Counts of one compilation in the minute of its process; the recording of CUDA graphs is not a
    compilation."""
    if compiled["kind"] == "cuda_graph":
        return Counter(recordings=1)
    return Counter(
        compiles=1,
        recompiles=int(compiled["kind"] == "recompile"),
        compile_failures=int(compiled["outcome"] in ("raised", "suppressed")),
        request_compiles=int(compiled.get("in_request", False)),
    )


def _region_counts(region: dict[str, Any]) -> Counts:
    counts: Counts = Counter({name: region.get(name, 0) for name in CALLS})
    for cause, count in region.get("eager_by", {}).items():
        counts[f"eager_{cause}" if cause in EAGER else "unknown"] += count
    for name in SKETCHES:
        counts.update(sketch_counts(name, region.get(name)))
    return counts


def _entries(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of that kind; a last line that was cut off had not yet taken effect."""
    for line in path.read_bytes().split(b"\n"):
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if entry["kind"] == kind:
            yield entry
