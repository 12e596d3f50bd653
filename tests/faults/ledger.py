"""Ledger of a test agent: recorded windows and received acknowledgements. Each line is appended
before the job continues, so the ledger survives SIGKILL."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.wire.codec import encode, loads
from compilewatch.wire.messages import Report
from compilewatch.wire.sketch import Sketch

COUNTS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")


class Ledger:
    """The ledger of one process; each line is one write to a file in append mode."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, **data: object) -> None:
        """One line with the time."""
        os.write(
            self._descriptor, json.dumps({"kind": kind, "at": time.time(), **data}).encode() + b"\n"
        )

    def window(self, instance: str, report: Report) -> None:
        """A closed window, before other code sees it."""
        self.write("window", instance=instance, report=encode(report))


@dataclass
class Recorded:
    """The lines of one process."""

    windows: dict[str, dict[int, Report]] = field(default_factory=dict)
    """By instance and sequence number."""
    acked: dict[str, set[int]] = field(default_factory=dict)
    kept: dict[str, set[int]] = field(default_factory=dict)
    """Windows that were on disk before the job continued."""
    begun: int = 0
    """Calls that the job was about to make."""
    done: int = 0
    """Calls that returned."""
    done_before_last_close: int = 0
    """Calls that had returned when the newest window ended."""
    attempts: list[tuple[float, float]] = field(default_factory=list)
    """Start and end of each request, in Unix seconds."""

    @property
    def closed(self) -> int:
        """Calls in all windows."""
        return sum(
            region.calls
            for windows in self.windows.values()
            for report in windows.values()
            for region in report.regions
        )


def ledger_read(path: Path) -> Recorded:
    """Reads a ledger. A last line that was cut off is ignored: its event had not yet taken
    effect."""
    found, ends, dones = Recorded(), [0.0], []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if entry["kind"] == "window":
            report = loads(Report, json.dumps(entry["report"]).encode())
            found.windows.setdefault(entry["instance"], {})[report.seq[0]] = report
            ends.append(report.window[1])
        elif entry["kind"] == "kept":
            found.kept.setdefault(entry["instance"], set()).add(entry["number"])
        elif entry["kind"] == "acked":
            numbers = {
                number for first, last in entry["ranges"] for number in range(first, last + 1)
            }
            found.acked.setdefault(entry["instance"], set()).update(numbers)
        elif entry["kind"] == "begin":
            found.begun += entry["calls"]
        elif entry["kind"] == "done":
            found.done += entry["calls"]
            dones.append((entry["at"], entry["calls"]))
        elif entry["kind"] == "attempt":
            found.attempts.append((entry["began"], entry["at"]))
    found.done_before_last_close = sum(calls for at, calls in dones if at < max(ends))
    return found


def acks_read(path: Path) -> list[set[int]]:
    """The numbers that each response acknowledged, in the order of the responses."""
    entries = [
        json.loads(line)
        for line in path.read_bytes().split(b"\n")
        if b'"acked"' in line and line.endswith(b"}")
    ]
    return [
        {number for first, last in entry["ranges"] for number in range(first, last + 1)}
        for entry in entries
    ]


@dataclass
class Totals:
    """Counts by name, and the bins of the latency sketches: steady calls, and warm-up calls."""

    counts: Counter[str] = field(default_factory=Counter)
    latency: Sketch = field(default_factory=Sketch)
    warmup: Sketch = field(default_factory=Sketch)

    @classmethod
    def of(cls, reports: Iterable[Report]) -> Totals:
        """The sum over the windows."""
        totals = cls()
        for report in reports:
            for region in report.regions:
                totals.counts.update({name: getattr(region, name) for name in COUNTS})
                totals.counts.update(
                    {f"eager_{cause}": count for cause, count in region.eager_by.items()}
                )
                totals.merge(region.latency, region.warmup)
        return totals

    def merge(self, latency: Sketch | None, warmup: Sketch | None) -> None:
        """Adds sketches."""
        if latency is not None:
            self.latency.merge(latency)
        if warmup is not None:
            self.warmup.merge(warmup)

    def plain(self) -> dict[str, Any]:
        """All values that must be equal, bin by bin."""
        return {
            **{name: count for name, count in self.counts.items() if count},
            "latency": dict(self.latency.items()),
            "warmup": dict(self.warmup.items()),
            "zero": self.latency.zero + self.warmup.zero,
        }
