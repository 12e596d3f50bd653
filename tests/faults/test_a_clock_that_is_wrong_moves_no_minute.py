"""A host whose clock is wrong by an hour or a year: everything arrives, in the minutes of the
dashboard's clock."""

from __future__ import annotations

import time

import pytest

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.results import AddResult
from tests.faults.size import FULL

HOUR, YEAR = 3600.0, 31_556_952.0
SHORT = {"an hour behind": -HOUR, "a year ahead": YEAR}
CLOCKS = (
    {**SHORT, "an hour ahead": HOUR, "a year behind": -YEAR, "a day ahead": 24 * HOUR}
    if FULL
    else SHORT
)
MINUTES = (
    "SELECT min(minute), max(minute) FROM version_minute JOIN series ON series.id = series_id"
    " JOIN model_version ON model_version.id = series.version_id WHERE model_version.name "
    "= '{version}'"
)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_that_is(clock: str, line: Line, jobs: Jobs, add_result: AddResult) -> None:
    began = time.time()
    process = jobs.start(
        "--impatient", "--seconds", "3" if FULL else "1.5", "--clock", str(CLOCKS[clock])
    )
    assert process.wait(170) == 0
    if list(jobs.spools.rglob("*.spool")):
        jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    [(first, last)] = line.stack.rows(MINUTES.format(version=jobs.version))
    add_result("19", **found)
    assert found["calls folded"] == found["calls"]
    assert began // 60 - 1 <= first <= last <= time.time() // 60 + 1
