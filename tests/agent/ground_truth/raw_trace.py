"""Torch's own account of a process, read line by line on a machine without tlparse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.agent.ground_truth.trace import Entry, Trace, account


def raw_traces_read(folder: Path) -> list[Trace]:
    """The traces in a folder, one per process; a file with only a header belongs to a process that
    compiled nothing."""
    found = []
    for log in sorted(folder.glob("dedicated_log_torch_trace_*.log")):
        entries = list(entries_of(log))
        if entries:
            events = [
                json.loads(payload)
                for entry, payload in entries
                if "chromium_event" in entry and payload
            ]
            found.append(account(entries, events))
    return found


def entries_of(log: Path) -> Iterator[Entry]:
    """A line with a prefix and a JSON object is an entry; the following lines that begin with a tab
    are its payload."""
    entry, payload = None, list[str]()
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("\t"):
            payload.append(line[1:])
            continue
        if entry is not None:
            yield entry, "\n".join(payload)
        head = line.partition("] ")[2]
        entry, payload = (json.loads(head) if head.startswith("{") else None), []
    if entry is not None:
        yield entry, "\n".join(payload)
