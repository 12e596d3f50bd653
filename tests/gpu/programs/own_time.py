"""`python own_time.py PROGRAM`: runs it with the agent on, and says at its end what our hooks took
of the time of its compilations."""

from __future__ import annotations

import functools
import json
import runpy
import sys
import time
from collections.abc import Callable
from typing import Any

import compilewatch
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.dynamo.compilations import Compilations

spent = {"hooks": 0.0, "wall": 0.0, "calls": 0.0}
"""Seconds of processor time and of the clock, which also runs while other processes of the machine
do."""


def timed(hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def ours(*args: Any, **kwargs: Any) -> Any:
        began, processor = time.perf_counter(), time.thread_time()
        try:
            return hook(*args, **kwargs)
        finally:
            spent["hooks"] += time.thread_time() - processor
            spent["wall"] += time.perf_counter() - began
            spent["calls"] += 1

    return ours


def main(program: str) -> None:
    """Every call of our two compile-time hooks is timed; the last line of the output is JSON."""
    Compilations._on_event = timed(Compilations._on_event)  # type: ignore[method-assign]
    Compilations._on_record = timed(Compilations._on_record)  # type: ignore[method-assign]
    assert compilewatch.init(version="1", interval=2.0)
    runpy.run_path(program, run_name="__main__")
    time.sleep(1.5)  # the agent's thread meets CUDA and a steady call
    assert RECORDER.internal_error_count == 0, RECORDER.last_error
    compilewatch.shutdown()
    print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
