"""Size of a fault test: the short form in every test run, the full form with
COMPILEWATCH_TEST_FAULTS=full."""

from __future__ import annotations

import os

FULL = os.environ.get("COMPILEWATCH_TEST_FAULTS") == "full"


def sized(short: int, full: int) -> int:
    """The number for this run."""
    return full if FULL else short
