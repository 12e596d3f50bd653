"""TorchScript warm-up: the profiling executor runs a function slowly before it compiles; those
calls count as warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.torch_internals import PROFILED_RUNS

SETTLING_CALLS = 2
"""Calls after the profiled runs: one that compiles, and the first call of the compiled code,
which is slower than later ones."""
USUAL_PROFILED_RUNS = 1


def profiled_runs() -> int | None:
    """How many runs torch profiles before it compiles; None if unknown."""
    runs = PROFILED_RUNS.call(None)
    return runs if isinstance(runs, int) else None


def warmup_calls() -> int:
    """Calls of a callable that are slower than later ones."""
    runs = profiled_runs()
    return (USUAL_PROFILED_RUNS if runs is None else runs) + SETTLING_CALLS


def count_warm_up(target: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the target with its first calls counted as warm-up, together with the calls around
    them."""
    remaining = [None] * warmup_calls()

    def call_target(*args: Any, **kwargs: Any) -> Any:
        if remaining:
            try:
                remaining.pop()
            except IndexError:  # another thread took the last one
                return target(*args, **kwargs)
            RECORDER.advance_step()
        return target(*args, **kwargs)

    return call_target
