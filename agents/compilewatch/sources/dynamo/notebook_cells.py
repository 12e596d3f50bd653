"""The cell of a notebook that a file name of IPython's compiler names: such a name is a temporary file's, another one each time."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any


def cell_of(filename: str) -> str:
    """`In [3]`, with the number that the cell had when it ran last; empty for what is no cell."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None:
        return ""
    with suppress(Exception):  # another release keeps its names elsewhere
        number = ipython.get_ipython().compile._filename_map.get(filename)
        return "" if number is None else f"In [{int(number)}]"
    return ""
