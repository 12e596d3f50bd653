"""A job of a soak: its agent sends each second of real time, ten times as often as usual; `python
-m tests.bench.soak_job LEDGER`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
import time
from pathlib import Path

import compilewatch

from tests.bench.soak_clock import clock_of_this_process
from tests.faults.job import observe
from tests.faults.ledger import Ledger


def main() -> None:
    """Calls two watched functions until the process is terminated."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--interval", type=float, default=1.0)
    given = parser.parse_args()
    time.time = clock_of_this_process()
    observe(Ledger(given.ledger))
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    assert compilewatch.init(model="soak", version=given.version, interval=given.interval)
    step = compilewatch.watch(lambda: None, name="step")

    @compilewatch.watch
    def fails() -> None:
        raise ValueError("no such batch")

    while not over.wait(0.3):
        for _ in range(5):
            step()
        with contextlib.suppress(ValueError):
            fails()
    compilewatch.shutdown()


if __name__ == "__main__":
    main()
