"""A running dashboard and its data of one version, for the comparison with the ledgers of the jobs
of that version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compilewatch.wire.messages import SeqRange
from compilewatch.wire.sketch import Sketch

from dashboard.ingest.sequence_ranges import Coverage
from tests.faults.ledger import COUNTS, Recorded, Totals
from tests.faults.results import LedgerError
from tests.flow.stack import Stack, wait_for

EAGER = ("eager_limit", "eager_stance", "eager_skip", "eager_disabled", "eager_error")


@dataclass
class Held:
    """Data of one instance in the dashboard: the ranges held, and the number shown as missing."""

    ranges: list[SeqRange]
    shown_missing: int

    @property
    def numbers(self) -> set[int]:
        """Every durable sequence number."""
        return {number for first, last in self.ranges for number in range(first, last + 1)}


NOTHING = Held([], 0)
"""The data of an unknown instance."""


class Holdings:
    """The data of a running dashboard, read from its database."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def senders(self) -> dict[str, Held]:
        """The data of each instance. Closed gaps are no longer gaps of the ranges: their numbers
        count as missing."""
        found = {}
        columns = "instance_id, CAST(ranges AS text), CAST(closed AS text), missing"
        for instance, ranges, closed, missing in self.stack.rows(
            f"SELECT {columns} FROM ingest_sender"
        ):
            coverage = Coverage.of(json.loads(ranges), json.loads(closed), missing)
            found[instance] = Held(
                list(self._without(coverage)), coverage.missing + coverage.open_gaps
            )
        return found

    def _without(self, coverage: Coverage) -> Iterator[SeqRange]:
        for first, last in coverage.ranges:
            for gap_first, gap_last in coverage.closed:
                if first <= gap_first and gap_last <= last:
                    yield first, gap_first - 1
                    first = gap_last + 1
            yield first, last

    def totals(self, version: str) -> Totals:
        """The folded totals of the version, from the hours, since windows of any length are counted
        in hours."""
        columns = (*COUNTS, *EAGER, "latency", "warmup")
        rows = self.stack.rows(
            f"SELECT {', '.join('version_hour.' + name for name in columns)} FROM "
            "version_hour JOIN series ON series.id = series_id"
            " JOIN model_version ON model_version.id = series.version_id WHERE "
            f"model_version.name = '{version}'"
        )
        totals = Totals()
        for row in rows:
            by_name = dict(zip(columns, row, strict=True))
            totals.counts.update({name: by_name[name] for name in (*COUNTS, *EAGER)})
            totals.merge(
                *(
                    None if by_name[name] is None else Sketch.unpack(by_name[name])
                    for name in ("latency", "warmup")
                )
            )
        return totals

    def check(
        self, version: str, jobs: list[Recorded], others: list[Recorded] | None = None
    ) -> dict[str, int]:
        """Checks three conditions. Acknowledged windows are folded, and folded windows were
        recorded. The folded totals equal the ledger bin by bin. Missing windows are shown as
        missing. `others` are jobs of another version that may have sent remaining windows of these
        jobs. Raises a LedgerError with the counts."""
        wait_for("everything is folded", self.stack.folded, seconds=120)
        senders, found, folded, problems = self.senders(), Counter[str](), [], set()
        for job in [*jobs, *(others or [])]:
            for (
                instance,
                acked,
            ) in job.acked.items():  # one job may have sent the remaining windows of another
                found["acknowledged lost"] += len(acked - senders.get(instance, NOTHING).numbers)
        for job in jobs:
            for instance, windows in job.windows.items():
                held = senders.get(instance, NOTHING)
                gaps = set(range(1, max(held.numbers, default=0))) - held.numbers
                folded += [windows[number] for number in held.numbers & set(windows)]
                found["windows lost"] += len(set(windows) - held.numbers)
                found["lost that were on disk"] += len(job.kept.get(instance, set()) - held.numbers)
                found["shown missing"] += held.shown_missing
                problems |= {"held but never recorded"} if held.numbers - set(windows) else set()
                problems |= (
                    {"missing but not shown as missing"}
                    if held.shown_missing != len(gaps)
                    else set()
                )
        expected, counted = Totals.of(folded), self.totals(version)
        found["calls folded"], difference = (
            expected.counts["calls"],
            counted.counts["calls"] - expected.counts["calls"],
        )
        found["calls"] = sum(job.begun for job in jobs)
        found["doubled"], found["folded too few"] = max(0, difference), max(0, -difference)
        found["windows"], found["jobs"] = (
            sum(len(windows) for job in jobs for windows in job.windows.values()),
            len(jobs),
        )
        problems |= (
            {"folded and recorded totals differ"} if counted.plain() != expected.plain() else set()
        )
        problems |= (
            {"a report was quarantined"}
            if self.stack.rows("SELECT count(*) FROM ingest_poison")[0][0]
            else set()
        )
        problems |= {"acknowledged but not held"} if found["acknowledged lost"] else set()
        if problems:
            raise LedgerError("; ".join(sorted(problems)), dict(found))
        return found


class Line(Holdings):
    """The dashboard in its own processes, on SQLite."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Stack(database="sqlite", folder=folder, outbound="127.0.0.1:9"))
        self.stack.start(channel="http://127.0.0.1:9/none")

    @property
    def endpoint(self) -> str:
        """The URL for reports."""
        return f"http://127.0.0.1:{self.stack.port}"

    def close(self) -> None:
        """Ends the dashboard."""
        self.stack.close()
