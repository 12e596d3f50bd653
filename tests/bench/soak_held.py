"""Number of Python memory blocks in use in a process of a soak. The process writes it every half
minute; memory that the allocators keep is not included."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

VARIABLE = "SOAK_HELD"
EVERY = 30.0


def start_reports() -> None:
    """Starts the reports of this process and of each forked child, each in its own file in the
    folder from the environment."""
    if folder := os.environ.get(VARIABLE):
        _begin(folder)
        os.register_at_fork(after_in_child=lambda: _begin(folder))


def held(folder: Path, pid: int) -> float:
    """Blocks in use according to the last report of the process, 0 before the first report."""
    file = folder / str(pid)
    return float(file.read_text() or 0) if file.exists() else 0.0


def _begin(folder: str) -> None:
    threading.Thread(target=_write, args=(folder,), name="soak-held", daemon=True).start()


def _write(folder: str) -> None:
    while True:
        time.sleep(EVERY)
        gc.collect()
        Path(folder, str(os.getpid())).write_text(str(sys.getallocatedblocks()))
