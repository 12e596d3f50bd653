"""The counts of a job are compared with the windows of its agent: every missing or surplus count is
found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.account import calls_compare
from tests.faults.ledger import Ledger
from tests.faults.notes import notes_read

MINUTE = 1_795_200_000.0
"""Long before the lines are written: each burst ends before the end of the next window."""


def found(folder: Path, **changed: Any) -> list[str]:
    """Problems of two bursts with ten calls, three errors and a compilation each, and of two
    windows with these counts."""
    ledger = Ledger(folder / "0.round-1.ledger")
    for number in (1, 2):
        ledger.write("begin", calls=10, errors=3)
        ledger.write("compile", id=f"{number}/0")
        ledger.write("done", calls=10, errors=3)
        ledger.write("compiled", id=f"{number}/0")
        region = {"name": "step", "calls": 10, "errors": 3} | (changed if number == 2 else {})
        compiled = {"at": MINUTE, "id": f"{number}/0", "kind": "first", "outcome": "ok"}
        kept = region.pop("compiles", True)
        window = {
            "seq": [number, number],
            "window": [MINUTE, 2 * MINUTE],
            "regions": [region],
            "compiles": [compiled] if kept else [],
        }
        ledger.write("window", instance="a" * 26, report=window)
    return calls_compare(folder, notes_read(folder))


def test_equal_counts_have_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path) == []


def test_a_burst_that_ends_just_after_a_window_may_be_in_the_next_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter((MINUTE + 0.0001, MINUTE + 0.0008, MINUTE + 0.0009))
    monkeypatch.setattr("tests.faults.ledger.time.time", lambda: next(moments))
    ledger = Ledger(tmp_path / "0.round-1.ledger")
    ledger.write("begin", calls=10, errors=0)
    ledger.write("done", calls=10, errors=0)
    ledger.write(
        "window", instance="a" * 26, report={"seq": [1, 1], "window": [MINUTE - 1, MINUTE + 0.0007]}
    )
    assert calls_compare(tmp_path, notes_read(tmp_path)) == []


@pytest.mark.parametrize(
    "changed", [{"calls": 9}, {"calls": 11}, {"errors": 2}, {"errors": 4}, {"compiles": False}]
)
def test_a_difference_of_one_is_found(tmp_path: Path, changed: dict[str, Any]) -> None:
    [problem] = found(tmp_path, **changed)
    assert problem.startswith("0.round-1.ledger: up to window [2, 2]")
