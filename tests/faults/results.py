"""A pytest plugin for full runs: stores the result of each test when it ends, so that an
interrupted run can continue, and prints one table of the whole list at the end."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rows import ROWS
from tests.faults.size import FULL
from tests.faults.table import Entry, lines

FOUND = Path(os.environ.get("COMPILEWATCH_TEST_RESULTS", ".var/faults.jsonl"))
"""Not in `test-results`: the screenshot plugin of the browser tests empties that folder whenever
pytest starts."""
AddResult = Callable[..., None]
_ADDED = pytest.StashKey[list[dict[str, Any]]]()


class LedgerError(AssertionError):
    """The data of a dashboard differs from the ledgers; contains the counts."""

    def __init__(self, problem: str, figures: dict[str, int]) -> None:
        super().__init__(f"{problem}: {figures}")
        self.figures = figures


def seed_of(nodeid: str) -> int:
    """Seed of a test: another number for each test, the same in each run unless
    COMPILEWATCH_TEST_SEED differs."""
    return zlib.crc32(f"{os.environ.get('COMPILEWATCH_TEST_SEED', '1')} {nodeid}".encode())


def entries_read() -> list[Entry]:
    """The latest result of each test; a last line that was cut off is ignored."""
    found: dict[str, Entry] = {}
    for text in FOUND.read_text().splitlines() if FOUND.exists() else []:
        try:
            entry = Entry(**json.loads(text))
        except (ValueError, TypeError):
            continue
        found[entry.test] = entry
    return list(found.values())


def entry_add(entry: Entry) -> None:
    """Stores the result of one test."""
    FOUND.parent.mkdir(parents=True, exist_ok=True)
    with FOUND.open("a") as file:
        file.write(f"\n{json.dumps(entry._asdict())}\n")  # a killed run may have left half a line


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that passed in an earlier run; if all tests have passed, the list starts
    from the beginning."""
    if not FULL:
        return
    passed = {entry.test for entry in entries_read() if entry.passed}
    done = [item for item in items if item.nodeid in passed]
    if done and len(done) == len(items):
        FOUND.replace(FOUND.with_suffix(".last.jsonl"))
        return
    config.hook.pytest_deselected(items=done)
    items[:] = [item for item in items if item not in done]


def pytest_report_header() -> list[str]:
    """The number for the seeds of all tests, and the file with the results of a full run."""
    return (
        [
            f"faults: COMPILEWATCH_TEST_SEED={os.environ.get('COMPILEWATCH_TEST_SEED', '1')}, results in {FOUND}"
        ]
        if FULL
        else []
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Stores the result of each test of a full run immediately."""
    report: Any = yield
    if FULL and (report.failed or (report.when == "call" and report.passed)):
        added = item.stash.get(_ADDED, [])
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, LedgerError):
            added = [*added, error.figures]
        problem = "" if report.passed else str(report.longrepr).strip().splitlines()[-1][:200]
        entry = Entry(
            item.nodeid,
            seed_of(item.nodeid),
            report.passed,
            round(report.duration, 1),
            added,
            problem,
        )
        entry_add(entry)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of the whole list, including the results of interrupted runs."""
    if FULL:
        terminalreporter.section("faults")
        for text in lines(ROWS, entries_read()):
            terminalreporter.write_line(text)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of the test."""
    return seed_of(request.node.nodeid)


@pytest.fixture
def add_result(request: pytest.FixtureRequest) -> AddResult:
    """Adds values to the table of a full run: the row or rows of the list, and values by name."""
    added = request.node.stash.setdefault(_ADDED, [])

    def take(row: str = "", **figures: object) -> None:
        added.append({"row": row, **figures})

    return take
