"""A pytest plugin of full runs: what each test found is written down when it ends, so that a run
that was interrupted goes on where it was, and the end of a run shows one table for the whole
list."""

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
"""Not in `test-results`: what takes pictures in browser tests empties that folder whenever pytest
starts."""
Tell = Callable[..., None]
_TOLD = pytest.StashKey[list[dict[str, Any]]]()


class LedgerError(AssertionError):
    """A dashboard that does not hold what the ledgers say, with the figures of what was found."""

    def __init__(self, problem: str, figures: dict[str, int]) -> None:
        super().__init__(f"{problem}: {figures}")
        self.figures = figures


def seed_of(nodeid: str) -> int:
    """What chance begins with: another number for each test, the same in each run unless
    COMPILEWATCH_TEST_SEED says otherwise."""
    return zlib.crc32(f"{os.environ.get('COMPILEWATCH_TEST_SEED', '1')} {nodeid}".encode())


def entries_read() -> list[Entry]:
    """What was found up to now, the newest of each test; a last line that was cut off is left
    out."""
    found: dict[str, Entry] = {}
    for text in FOUND.read_text().splitlines() if FOUND.exists() else []:
        try:
            entry = Entry(**json.loads(text))
        except (ValueError, TypeError):
            continue
        found[entry.test] = entry
    return list(found.values())


def entry_add(entry: Entry) -> None:
    """Writes down how one test went."""
    FOUND.parent.mkdir(parents=True, exist_ok=True)
    with FOUND.open("a") as file:
        file.write(
            f"\n{json.dumps(entry._asdict())}\n"
        )  # a run that was killed may have left half a line


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what an earlier run has passed; once that is everything, the list begins anew."""
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
    """The number from which each test's own seed is made, and where a full run writes what it
    finds."""
    return (
        [
            f"faults: COMPILEWATCH_TEST_SEED={os.environ.get('COMPILEWATCH_TEST_SEED', '1')}, found so far in {FOUND}"
        ]
        if FULL
        else []
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Writes down how a test of a full run went, as soon as it did."""
    report: Any = yield
    if FULL and (report.failed or (report.when == "call" and report.passed)):
        told = item.stash.get(_TOLD, [])
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, LedgerError):
            told = [*told, error.figures]
        problem = "" if report.passed else str(report.longrepr).strip().splitlines()[-1][:200]
        entry = Entry(
            item.nodeid,
            seed_of(item.nodeid),
            report.passed,
            round(report.duration, 1),
            told,
            problem,
        )
        entry_add(entry)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of the whole list, with what interrupted runs found before."""
    if FULL:
        terminalreporter.section("faults")
        for text in lines(ROWS, entries_read()):
            terminalreporter.write_line(text)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The test's own."""
    return seed_of(request.node.nodeid)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Takes figures for the table of a full run: a row of the list, or several, and figures by
    name."""
    told = request.node.stash.setdefault(_TOLD, [])

    def take(row: str = "", **figures: object) -> None:
        told.append({"row": row, **figures})

    return take
