"""The one table that a full run of the fault list ends with, made of what its tests wrote down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.faults.rows import Row

LOST, DOUBLED, RUNS = "acknowledged lost", "doubled", "runs"
OTHER = "other"
TOLD_APART = ("row", "jobs", LOST, DOUBLED, RUNS)
LARGEST = ("longest", "most", "p99")
"""Of figures whose name begins like this the largest is shown, of others the sum."""


class Entry(NamedTuple):
    """How one test went; `told` are the figures that it gave, each with the row that it is
    about."""

    test: str
    seed: int
    passed: bool
    seconds: float
    told: list[dict[str, Any]]
    problem: str = ""


def rows_of(entry: Entry, rows: Mapping[str, Row]) -> set[str]:
    """The rows that a test belongs to: those that it named, else all that name its file, else that
    of what is in no row."""
    words = (
        words
        for told in entry.told
        for row in str(told.get("row", "")).split(",")
        if (words := row.split())
    )
    named = {first for first, *_ in words if first in rows}
    file = entry.test.split("::")[0].removeprefix("tests/")
    return named or {number for number, row in rows.items() if file in row.files} or {OTHER}


def lines(rows: Mapping[str, Row], entries: list[Entry]) -> Iterator[str]:
    """A line a row, then each test that failed, with its seed."""
    yield (
        f"{'row':>6}  {'fault':<62} {'tests':>5} {'runs':>6} {LOST:>17} {DOUBLED:>8}  other "
        "findings"
    )
    for number, row in {**rows, OTHER: Row("what is in no row", ())}.items():
        ours = [entry for entry in entries if number in rows_of(entry, rows)]
        if number == OTHER and not ours:
            continue
        told = [figures for entry in ours for figures in entry.told]
        runs = sum(int(one.get(RUNS, one.get("jobs", 0))) for one in told) + sum(
            not entry.told for entry in ours
        )
        lost, doubled = _sum(told, LOST), _sum(told, DOUBLED)
        yield (
            f"{number:>6}  {row.fault:<62} {len(ours):>5} {runs:>6} {lost:>17} {doubled:>8}  "
            f"{_others(told, ours)}"
        )
        if row.goal:
            yield (
                f"{'':>6}  {sum(entry.passed for entry in ours):,} of {row.goal:,} have passed "
                "so far"
            )
    for entry in entries:
        if not entry.passed:
            yield f"failed: {entry.test}  seed {entry.seed}  {entry.problem}"


def _sum(told: list[dict[str, Any]], name: str) -> str:
    counted = [int(figures[name]) for figures in told if name in figures]
    return str(sum(counted)) if counted else "-"


def _others(told: list[dict[str, Any]], ours: list[Entry]) -> str:
    found: dict[str, Any] = {}
    for figures in told:
        for name, value in figures.items():
            if name not in TOLD_APART and isinstance(value, (int, float)):
                before = found.get(name)
                found[name] = (
                    value
                    if before is None
                    else max(before, value)
                    if name.startswith(LARGEST)
                    else before + value
                )
    failed = sum(not entry.passed for entry in ours)
    words = [f"{failed} FAILED"] if failed else ["nothing ran"] if not ours else []
    return ", ".join(
        [*words, *(f"{name.replace('_', ' ')} {value:g}" for name, value in found.items())]
    )
