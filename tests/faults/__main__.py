"""`python -m tests.faults [ROW ...]`: runs the full fault list, or only these rows; an interrupted
run can continue."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable

import pytest

from tests.faults.rows import BENCHMARKS, ROWS
from tests.long_forms import LONG_TESTS


def main(words: list[str]) -> int:
    """The exit code of pytest, or 1 if a benchmark missed its goal; words that are not rows go to
    pytest."""
    os.environ["COMPILEWATCH_TEST_FAULTS"] = "full"  # before any module reads it
    chosen = [ROWS[word] for word in words if word in ROWS]
    named = dict.fromkeys(file for row in chosen or ROWS.values() for file in row.files)
    if not chosen:
        named |= dict.fromkeys(entry.partition("::")[0] for entry in LONG_TESTS["full_only"])
    missed = measured(file for file in named if file.startswith(BENCHMARKS))
    files = [
        file
        for file in named
        if not file.startswith((BENCHMARKS, *(() if chosen else ("faults/",))))
    ]
    places = [f"tests/{file}" for file in files + ([] if chosen else ["faults"])]
    options = ["--timeout=7200", *(word for word in words if word not in ROWS)]
    return (pytest.main([*places, *options]) if places else 0) or missed


def measured(files: Iterable[str]) -> int:
    """Runs the benchmarks that have not passed in an earlier run, each in its own process, and
    stores the results."""
    from tests.faults.results import entries_read, entry_add
    from tests.faults.table import Entry

    passed = {entry.test for entry in entries_read() if entry.passed}
    failed = 0
    for file in files:
        if file in passed:
            continue
        began = time.monotonic()
        words = [sys.executable, "-m", f"tests.{file.removesuffix('.py').replace('/', '.')}"]
        code = subprocess.run(words, check=False).returncode
        problem = f"ended with status {code}" if code else ""
        entry_add(Entry(file, 0, not code, round(time.monotonic() - began, 1), [], problem))
        failed |= bool(code)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
