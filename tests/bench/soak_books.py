"""The ledgers of a soak: compares the recorded and acknowledged calls of jobs with the stored and
folded calls of the dashboard."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psycopg

from tests.flow.stack import Stack

FOLDED = """
SELECT model_version.name, version_hour.day, sum(version_hour.calls)::bigint FROM version_hour JOIN series ON series.id = series_id
JOIN model_version ON model_version.id = series.version_id GROUP BY 1, 2
"""


class Books:
    """Counts of calls. The dashboard drops old rows during the run, so the last counts of each day
    and sender are kept here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.calls: dict[str, dict[int, int]] = defaultdict(dict)
        """By instance and sequence number."""
        self.acked: dict[str, set[int]] = defaultdict(set)
        self.version: dict[str, str] = {}
        self._folded: dict[str, dict[int, int]] = defaultdict(dict)
        self._held: dict[str, set[int]] = defaultdict(set)

    def note(self, version: str, instance: str, number: int, calls: int) -> None:
        """Records a window before it is sent."""
        self.version[instance], self.calls[instance][number] = version, calls

    def read(self) -> None:
        """Reads the lines that the jobs have written since the last read; incomplete lines wait."""
        for path in self._folder.glob("*.ledger"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text, end, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(text) + len(end)
            for line in text.splitlines():
                self._entry(path.name.split(".")[1], json.loads(line))

    def _entry(self, version: str, entry: dict[str, Any]) -> None:
        if entry["kind"] == "window":
            report = entry["report"]
            self.note(
                version,
                entry["instance"],
                report["seq"][0],
                sum(region.get("calls", 0) for region in report.get("regions", ())),
            )
        elif entry["kind"] == "acked":
            self.acked[entry["instance"]].update(
                number for first, last in entry["ranges"] for number in range(first, last + 1)
            )

    def audit(self, stack: Stack) -> dict[str, int]:
        """Compares the counts in one snapshot of the database, while reports and folds continue."""
        self.read()
        promised = {
            instance: set(numbers) for instance, numbers in list(self.acked.items())
        }  # other threads continue to add
        waiting = self._look(stack)
        self.read()
        found = Counter[str](lost=0, doubled=0, too_few=0, poison=0)
        expected = Counter[str]()
        for instance, windows in list(self.calls.items()):
            held = self._held[instance]
            found["lost"] += len(promised.get(instance, set()) - held)
            found["acked"] += len(promised.get(instance, set()))
            found["windows"] += len(windows)
            expected[self.version[instance]] += sum(
                windows.get(number, 0) for number in held - waiting.get(instance, set())
            )
        for version, calls in expected.items():
            folded = sum(self._folded[version].values())
            found["calls"] += folded
            found["doubled"] += max(0, folded - calls)
            found["too_few"] += max(0, calls - folded)
        found["poison"] = self._poison
        return dict(found)

    def _look(self, stack: Stack) -> dict[str, set[int]]:
        with psycopg.connect(dbname=stack.name, **stack.server) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            senders = connection.execute(
                "SELECT instance_id, ranges, closed FROM ingest_sender"
            ).fetchall()
            inbox = connection.execute(
                "SELECT instance_id, seq_first, seq_last FROM ingest_inbox"
            ).fetchall()
            hours = connection.execute(FOLDED).fetchall()
            [self._poison] = connection.execute(
                "SELECT count(*) FROM ingest_poison"
            ).fetchone() or (0,)
        for instance, ranges, closed in senders:
            self._held[instance] = _numbers(ranges) - _numbers(closed)
        for version, day, calls in hours:
            self._folded[version][day] = calls
        waiting: dict[str, set[int]] = defaultdict(set)
        for instance, first, last in inbox:
            waiting[instance].update(range(first, last + 1))
        return waiting


def _numbers(ranges: list[list[int]]) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}
