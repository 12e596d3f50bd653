"""Runs of a golden batch: eager, eager in a higher precision, eager in TF32, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from compilewatch.errors import ComparisonError
from compilewatch.numerics.comparison import compare_all
from compilewatch.numerics.isolated_run import GRAPH_RUNS, Batch, Result, run_isolated
from compilewatch.numerics.reference_models import Target, in_precision, run_uncompiled
from compilewatch.numerics.tf32 import emulate_tf32, is_rough
from compilewatch.numerics.tolerance import find_worst
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import MAX_WHY


def run_eager(torch: Any, target: Target, batch: Batch, grads: bool) -> Result:
    """Runs eager twice: a difference between the two runs is not the compiler's fault."""
    first, second = (
        _run_or_refuse("eager", torch, target.eager, batch, target.module, grads) for _ in range(2)
    )
    if first.inputs_changed:
        raise ComparisonError("it changes its inputs in place")
    if not first.outputs:
        raise ComparisonError("it returns no tensor")
    found = compare_all(torch, second, first, None)
    if first.rest != second.rest or find_worst(found).times > 1.0:
        raise ComparisonError(
            "two eager calls differ: the callable is random or keeps state between calls"
        )
    return first


def run_in_tf32(
    torch: Any, target: Target, batch: Batch, grads: bool, eager: Result
) -> Result | None:
    """Runs eager in TF32 where the job lets a GPU use TF32; None elsewhere, or if the run fails."""
    if not any(is_rough(torch, one) for one in eager.outputs.values()):
        return None
    try:
        with run_uncompiled(torch, target.module), emulate_tf32(torch):
            rounded = run_isolated(torch, target.eager, batch, target.module, grads=grads)
    except Exception:  # noqa: BLE001 - plain eager remains the reference
        _release_gpu_memory(torch)
        return None
    return rounded if rounded.outputs.keys() == eager.outputs.keys() else None


def run_exact(
    torch: Any, target: Target, batch: Batch, grads: bool, eager: Result
) -> tuple[Result | None, str]:
    """Runs eager in the highest precision that is available; returns the result and its precision.

    Without a higher precision the answer is `(None, "eager")`."""
    dtypes = {
        one.dtype
        for one in (*batch.tensors, *eager.outputs.values())
        if one.dtype.is_floating_point or one.dtype.is_complex
    }
    if not dtypes or dtypes <= {torch.float64, torch.complex128}:
        return None, "eager"
    half = bool(dtypes & {torch.float16, torch.bfloat16})
    for dtype in (torch.float64, torch.float32) if half else (torch.float64,):
        try:
            model = in_precision(torch, target, dtype)
            if model is None:
                continue
            with run_uncompiled(torch, model[1]):
                exact = run_isolated(torch, model[0], batch, model[1], grads=grads, dtype=dtype)
        except Exception:  # noqa: BLE001 - some code supports one precision only
            _release_gpu_memory(torch)
            continue
        if exact.outputs.keys() == eager.outputs.keys() and any(
            one.dtype == dtype for one in exact.outputs.values()
        ):
            return exact, str(dtype).removeprefix("torch.")
    return None, "eager"


def run_compiled(torch: Any, target: Target, batch: Batch, grads: bool) -> Result:
    """Runs the compiled callable; several times on a GPU, where later calls replay a graph."""
    mark_step = getattr(torch.compiler, "cudagraph_mark_step_begin", None)
    on_gpu = any(one.device.type == "cuda" for one in batch.tensors)
    for number in range(GRAPH_RUNS if on_gpu else 1):
        if mark_step is not None and on_gpu:
            mark_step()
        result = _run_or_refuse("compiled", torch, target.compiled, batch, target.module, grads)
        if number == 0:
            first = result
    return result if result.inputs_changed or not first.inputs_changed else first


def describe_error(step: str, error: Exception) -> str:
    """Describes an exception of the job's code in one line."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return f"{step} ran out of memory"
    with suppress(Exception):
        return clip(
            f"{step} raised {type(error).__name__}: {' '.join(str(error).split())[:200]}", MAX_WHY
        )
    return f"{step} raised {type(error).__name__}"


def _run_or_refuse(
    which: str, torch: Any, fn: Callable[..., Any], batch: Batch, module: Any, grads: bool
) -> Result:
    """Runs the batch; raises ComparisonError with the reason if the job's code raises."""
    try:
        return run_isolated(torch, fn, batch, module, grads=grads)
    except ComparisonError:
        raise
    except Exception as error:  # noqa: BLE001 - the batch belongs to the job and may raise anything
        reason = describe_error(f"the {which} call", error)
    # Outside the handler, because the exception references the tensors of the call.
    _release_gpu_memory(torch)
    raise ComparisonError(reason)


def _release_gpu_memory(torch: Any) -> None:
    """Returns the cached memory of a failed call to the GPU, so that the job can use it."""
    with suppress(Exception):
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
