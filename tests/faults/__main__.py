"""`python -m tests.faults [ROW ...]`: the fault list in full length, or these rows of it; interrupted, it goes on where it was."""

from __future__ import annotations

import os
import sys

import pytest

from tests.faults.rows import ROWS


def main(words: list[str]) -> int:
    """The exit code of pytest; words that are no rows go to it."""
    os.environ["COMPILEWATCH_TEST_FAULTS"] = "full"  # before anything reads it
    chosen = [ROWS[word] for word in words if word in ROWS]
    files = [file for row in chosen or ROWS.values() for file in row.files if chosen or not file.startswith("faults/")]
    places = dict.fromkeys(f"tests/{file}" for file in files + ([] if chosen else ["faults"]))
    return pytest.main([*places, "--timeout=7200", *(word for word in words if word not in ROWS)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
