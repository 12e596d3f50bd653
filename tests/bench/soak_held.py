"""How many of Python's blocks a process of a soak has in use, written by itself each half minute:
what the allocators keep is not in it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

VARIABLE = "SOAK_HELD"
EVERY = 30.0


def tell() -> None:
    """From now on, and in each process that this one forks, in a file of its own in the folder that
    the environment names."""
    if folder := os.environ.get(VARIABLE):
        _begin(folder)
        os.register_at_fork(after_in_child=lambda: _begin(folder))


def held(folder: Path, pid: int) -> float:
    """Blocks that the process had in use when it was asked last, 0 if it has not said yet."""
    file = folder / str(pid)
    return float(file.read_text() or 0) if file.exists() else 0.0


def _begin(folder: str) -> None:
    threading.Thread(target=_write, args=(folder,), name="soak-held", daemon=True).start()


def _write(folder: str) -> None:
    while True:
        time.sleep(EVERY)
        gc.collect()
        Path(folder, str(os.getpid())).write_text(str(sys.getallocatedblocks()))
