"""Prints the table: `python -m tests.agent.ground_truth [CASE ...]` runs the programs, cold and
warm, two at a time."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.agent.ground_truth.cases import CASES, Case
from tests.agent.ground_truth.running import run_twice
from tests.agent.ground_truth.table import Row, rows_of

LIMIT = 3600.0
"""Seconds for one program: the table may be made on any machine, busy or idle."""


def main(names: list[str]) -> int:
    """0 if every row agrees or differs for a listed reason."""
    chosen = [case for case in CASES if not names or case.name in names]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as two:
        rows = [
            row
            for found in two.map(lambda case: _rows(case, Path(folder) / case.name), chosen)
            for row in found
        ]
    agreeing = sum(row.agrees for row in rows)
    faults = [row.fault for row in rows if row.fault]
    print(
        f"\n{len(chosen)} programs, {len(rows)} rows: {agreeing} agree, "
        f"{len(rows) - agreeing} differ, {len(faults)} without a reason"
    )
    return 1 if faults else 0


def _rows(case: Case, folder: Path) -> list[Row]:
    folder.mkdir()
    try:
        rows = [row for run in run_twice(case, folder, LIMIT) for row in rows_of(case, run)]
    except AssertionError as error:
        print(f"! {case.name:20} {error}")
        return []
    for row in rows:
        sign = "=" if row.agrees else "!" if row.fault else "~"
        trace = "" if row.agrees else f" | trace {row.trace}"
        print(
            f"{sign} {row.case:20} {row.start} {row.rank} {row.measure:18} "
            f"{row.agent}{trace} {(row.fault and '') or row.why}".rstrip()
        )
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
