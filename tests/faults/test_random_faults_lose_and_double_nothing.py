"""Under a random schedule of faults, every acknowledged report is folded once, and every folded
report was recorded.

Each round has a number, which is its seed: COMPILEWATCH_TEST_ROUND=postgresql-1004 repeats only
that round."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.lines import Lines
from tests.faults.results import AddResult
from tests.faults.rounds import Round
from tests.faults.rows import ROUNDS as ROUNDS_OF_A_FULL_RUN
from tests.faults.size import sized

FIRST = 1000 * int(os.environ.get("COMPILEWATCH_TEST_SEED", "1"))
EMBEDDED_EVERY = 3
ALONE = os.environ.get("COMPILEWATCH_TEST_ROUND")
ROUNDS = [ALONE] if ALONE else [
    f"{'postgresql' if number % EMBEDDED_EVERY else 'sqlite'}-{number}" for number in range(FIRST, FIRST + sized(6, ROUNDS_OF_A_FULL_RUN))
]  # fmt: skip
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round(name: str, lines: Lines, tmp_path: Path, add_result: AddResult) -> None:
    database, _, number = name.partition("-")
    line = lines.of(database)
    this = Round(line, lines.hook, int(number), tmp_path)
    try:
        found = this.run()
    except BaseException as error:
        print(f"round {name} failed: {error!r}, fired {dict(this.fired)}\n{line.logs()}")
        lines.drop(database)
        raise
    print(f"round {name}: {found} fired {dict(this.fired)}")
    add_result("ledger", runs=1, **found, **this.fired)
