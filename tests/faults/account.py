"""Compares the tables of a dashboard with the notes of the senders of one round; both sides are
computed independently."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.notes import acknowledged_read, notes_read
from tests.faults.tables import ARRIVALS_NOTED, Rows, arrivals_read, tables_read
from tests.faults.tally import Notes, differences, tally_of
from tests.faults.whole_line import WholeLine

SHOWN = 20


@dataclass
class Account:
    """Results of a round: numbers, and one sentence per problem."""

    figures: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def arrivals_note(line: WholeLine) -> None:
    """Makes the database record every stored report from now on, and raises the limits for the
    versions of any number of rounds."""
    for statement in ARRIVALS_NOTED[line.database]:
        line.rows_write(statement)
    line.manage(
        "limits",
        "--project",
        "flow",
        "--set",
        "version=1000000",
        "series=1000000",
        "instance=1000000",
    )


def account_of(rows: Rows, database: str, folder: Path) -> Account:
    """Compares every cell. Acknowledged reports must be stored, and no report may be stored twice
    or without a note."""
    notes = notes_read(folder)
    arrivals = arrivals_read(rows, {instance for instance, _, _ in notes})
    ledger = tally_of(notes, arrivals)
    found = differences(
        ledger, tables_read(rows, database, {note.version for note in notes.values()})
    )
    stored = {(arrival.instance, arrival.first, arrival.last) for arrival in arrivals}
    problems = [str(difference) for difference in found[:SHOWN]]
    problems += [
        f"{arrival} was stored {times} times"
        for arrival, times in Counter(arrivals).items()
        if times > 1
    ]
    problems += [
        f"{window} was acknowledged but is not stored"
        for window in acknowledged_read(folder) - stored
    ]
    problems += calls_compare(folder, notes)
    cells = Counter(cell.table for cell in ledger)
    counts = Counter[str]()
    for cell, values in ledger.items():
        if cell.table in ("region_minute", "process_minute", "compile_event"):
            counts.update(values)
    figures = {
        "cells": sum(cells.values()),
        "differences": len(found),
        "windows compared": len(arrivals),
    }
    figures |= {f"{table} cells": number for table, number in cells.items()}
    figures |= {
        "errors compared": counts["errors"],
        "compile events compared": counts["events"],
        "calls compared": counts["calls"],
    }
    figures["latency values compared"] = counts["latency"]
    return Account(figures, problems)


def calls_compare(folder: Path, notes: Notes) -> list[str]:
    """Compares the activity of jobs with an agent with their windows: by the end of each window,
    the windows contain at least the finished calls and at most the started calls."""
    problems = []
    for path in sorted(folder.glob("*.ledger")):
        began, over, closed = Counter[str](), Counter[str](), Counter[str]()
        history: list[tuple[float, Counter[str]]] = [(0.0, Counter())]
        for line in path.read_bytes().split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry["kind"] in ("begin", "done"):
                (began if entry["kind"] == "begin" else over).update(
                    calls=entry["calls"], errors=entry["errors"]
                )
            elif entry["kind"] in ("compile", "compiled"):
                (began if entry["kind"] == "compile" else over).update(compiles=1)
            elif entry["kind"] == "window":
                note = notes[entry["instance"], *entry["report"]["seq"]]
                for counts in (*note.regions.values(), note.process):
                    closed.update({name: counts[name] for name in ("calls", "errors", "compiles")})
                before = next(
                    counts for at, counts in reversed(history) if at < entry["report"]["window"][1]
                )
                if not before <= closed <= began:
                    problems.append(
                        f"{path.name}: up to window {entry['report']['seq']} {closed}, "
                        f"expected {before} to {began}"
                    )
            history.append((entry["at"], over.copy()))
    return problems
