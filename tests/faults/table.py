"""The table at the end of a full run of the fault list, from the stored results of its tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.faults.rows import Row

LOST, DOUBLED, RUNS = "acknowledged lost", "doubled", "runs"
OTHER = "other"
OWN_COLUMNS = ("row", "jobs", LOST, DOUBLED, RUNS)
LARGEST = ("longest", "most", "p99")
"""Values with these name prefixes are shown as the maximum, others as the sum."""


class Entry(NamedTuple):
    """The result of one test; `told` contains the values that the test added, each with its row."""

    test: str
    seed: int
    passed: bool
    seconds: float
    told: list[dict[str, Any]]
    problem: str = ""


def rows_of(entry: Entry, rows: Mapping[str, Row]) -> set[str]:
    """The rows of a test: those that the test named, else all rows with its file, else the row for
    tests without a row."""
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
    """One line per row, then each failed test with its seed."""
    yield (
        f"{'row':>6}  {'fault':<62} {'tests':>5} {'runs':>6} {LOST:>17} {DOUBLED:>8}  other "
        "findings"
    )
    for number, row in {**rows, OTHER: Row("tests without a row", ())}.items():
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
            if name not in OWN_COLUMNS and isinstance(value, (int, float)):
                before = found.get(name)
                found[name] = (
                    value
                    if before is None
                    else max(before, value)
                    if name.startswith(LARGEST)
                    else before + value
                )
    failed = sum(not entry.passed for entry in ours)
    words = [f"{failed} FAILED"] if failed else ["not run"] if not ours else []
    return ", ".join(
        [*words, *(f"{name.replace('_', ' ')} {value:g}" for name, value in found.items())]
    )
