"""Folded counts of the dashboard by instance and bin: double counts of one instance cannot
compensate for losses of another."""

from __future__ import annotations

from typing import Any

from compilewatch.wire.messages import Report
from compilewatch.wire.sketch import Sketch

from tests.faults.ledger import COUNTS, Recorded, Totals
from tests.faults.line import EAGER, Held, Holdings
from tests.flow.stack import Stack

COLUMNS = (*COUNTS, *EAGER, "latency", "warmup")


def instances_check(stack: Stack, holdings: Holdings, jobs: list[Recorded]) -> None:
    """The minutes of each instance equal its windows that the dashboard holds."""
    senders = holdings.senders()
    for job in jobs:
        for instance, windows in job.windows.items():
            held = senders.get(instance, Held([], 0)).numbers
            folded = [windows[number] for number in held]
            assert minutes_of(stack, instance).plain() == Totals.of(folded).plain(), instance
            assert windows_of(stack, instance) == count(folded), instance


def minutes_of(stack: Stack, instance: str) -> Totals:
    """The sum over the minutes of one instance."""
    totals = Totals()
    names = ", ".join(f"region_minute.{name}" for name in COLUMNS)
    for row in stack.rows(
        f"SELECT {names} FROM region_minute {joined('region_minute')} '{instance}'"
    ):
        by_name: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
        totals.counts.update({name: by_name[name] for name in (*COUNTS, *EAGER)})
        totals.merge(
            *(
                None if by_name[name] is None else Sketch.unpack(by_name[name])
                for name in ("latency", "warmup")
            )
        )
    return totals


def windows_of(stack: Stack, instance: str) -> int:
    """The number of windows counted for an instance."""
    [(found,)] = stack.rows(
        f"SELECT coalesce(sum(windows), 0) FROM process_minute {joined('process_minute')} "
        f"'{instance}'"
    )
    return int(found)


def joined(table: str) -> str:
    """The join up to the instance ID that the caller appends."""
    return f"JOIN instance ON instance.id = {table}.instance_id WHERE instance.instance_id ="


def count(reports: list[Report]) -> int:
    """Number of sequence numbers; a merged report has several."""
    return sum(report.seq[1] - report.seq[0] + 1 for report in reports)
