"""Warm-up of TorchScript: its profiling executor runs a function slowly before it compiles it; those calls count as warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.torch_internals import PROFILED_RUNS

SETTLING_CALLS = 2
"""After the profiled runs: the one that compiles, and the first of the compiled code, which is slower than those after it."""
USUAL_PROFILED_RUNS = 1


def profiled_runs() -> int | None:
    """How often torch runs a function to see its shapes; None where it does not say."""
    runs = PROFILED_RUNS.answer(None)
    return runs if isinstance(runs, int) else None


def warmup_calls() -> int:
    """The calls of a callable that are not yet as fast as those that follow."""
    runs = profiled_runs()
    return (USUAL_PROFILED_RUNS if runs is None else runs) + SETTLING_CALLS


def settling(target: Callable[..., Any]) -> Callable[..., Any]:
    """The target, whose first calls count as warm-up, for themselves and for the calls around them."""
    left = [None] * warmup_calls()

    def call(*args: Any, **kwargs: Any) -> Any:
        if left:
            try:
                left.pop()
            except IndexError:  # another thread took the last one
                return target(*args, **kwargs)
            RECORDER.warms_up()
        return target(*args, **kwargs)

    return call
