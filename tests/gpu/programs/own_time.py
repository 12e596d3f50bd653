"""`python own_time.py PROGRAM`: runs the program with the agent enabled, and prints the time of our
hooks within its compilations at the end."""

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
"""Processor time and wall time in seconds; wall time also includes other processes of the
machine."""


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
    """Times every call of our two compile-time hooks; the last line of the output is JSON."""
    Compilations._on_event = timed(Compilations._on_event)  # type: ignore[method-assign]
    Compilations._on_record = timed(Compilations._on_record)  # type: ignore[method-assign]
    assert compilewatch.init(version="1", interval=2.0)
    runpy.run_path(program, run_name="__main__")
    time.sleep(1.5)  # the agent's thread detects CUDA and sees a steady call
    assert RECORDER.internal_error_count == 0, RECORDER.last_error
    compilewatch.shutdown()
    print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
