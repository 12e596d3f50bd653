"""Notebook cells: maps a file name of IPython's compiler to its cell.

IPython compiles each cell under a temporary file name, which differs between processes."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any


def cell_of(filename: str) -> str:
    """Return `In [3]` with the number of the last run of the cell; empty if the file is no cell."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None:
        return ""
    with suppress(Exception):  # other IPython releases may differ
        number = ipython.get_ipython().compile._filename_map.get(filename)
        return "" if number is None else f"In [{int(number)}]"
    return ""
