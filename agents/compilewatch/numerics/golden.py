"""`golden`: a fixed batch before traffic, through the compiled callable and the same uncompiled, and what came of it."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from compilewatch.errors import NotCompared
from compilewatch.identity.identity import version_of
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import region_of
from compilewatch.instrument.runtime import runtime_of
from compilewatch.numerics.comparison import all_compared, judge
from compilewatch.numerics.empty_cache import run_with_empty_cache
from compilewatch.numerics.execution import observe_execution
from compilewatch.numerics.golden_history import Kept, against, summary_of
from compilewatch.numerics.isolated_run import GRAPH_RUNS, Batch, Result, run, undisturbed
from compilewatch.numerics.reference_models import Target, precise, target_of, uncompiled
from compilewatch.numerics.tf32 import emulate_tf32, is_rough
from compilewatch.numerics.tf32_rerun import Again, judge_without_tf32
from compilewatch.numerics.tolerance import share_alone, worst
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.runtime_names import AOTINDUCTOR
from compilewatch.recording.series_buffer import named
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import (
    MAX_GOLDENS,
    MAX_NAME,
    MAX_WHY,
    Parity,
    parity_data,
    parity_words,
)

_told: dict[str, str] = {}
"""By name, what was told of it last."""


class Golden(NamedTuple):
    """What came of a golden batch. `state` is `passed`, `failed` or `not compared`, `text` one line about it."""

    name: str
    state: str
    text: str
    told: Parity
    required: bool = False

    @property
    def failed(self) -> bool:
        """Whether the compiled callable gave another result; of a required batch also whether it was not compared."""
        return self.state == "failed" or (self.required and self.state != "passed")


def golden(
    name: str,
    fn: Callable[..., Any],
    inputs: Any,
    reference: Callable[..., Any] | None = None,
    grads: bool = False,
    required: bool = False,
) -> Golden:
    """Calls `fn` with the batch before traffic and compares what comes back with the same uncompiled (or `reference`), both against
    a higher precision. `inputs` are a tuple of arguments, a dict of keyword arguments, or one argument; `grads` compares gradients
    too. A batch that cannot be compared is a finding, and has `failed` where it is `required`. For the thread that loads the model: it
    waits for the GPU. Never raises, and leaves inputs, buffers, gradients, random
    numbers and modes as they were."""
    label, region, begun = clip(named(name), MAX_NAME), "", time.perf_counter()
    try:
        if hotpath.tracing():
            raise NotCompared("it was called inside a compilation")
        if RECORDER.lines is None:
            raise NotCompared("the agent is off")
        region = clip(region_of(fn), MAX_NAME)
        outcome = _compare(importlib.import_module("torch"), label, fn, inputs, reference, grads)
    except NotCompared as reason:
        outcome = Parity(label, "not compared", clip(str(reason), MAX_WHY))
    except Exception as error:  # noqa: BLE001 - the batch is the job's, and so is what it raises
        outcome = Parity(label, "not compared", _why("comparing", error))
    outcome = replace(outcome, region=region, seconds=round(time.perf_counter() - begun, 3))
    _tell(outcome)
    return Golden(label, outcome.state, parity_words(outcome), outcome, bool(required))


def _tell(outcome: Parity) -> None:
    """To the dashboard, a name as often as its state changes, and so many names as it keeps."""
    with suppress(Exception):
        if RECORDER.lines is not None and (outcome.name in _told or len(_told) < MAX_GOLDENS):
            _told[outcome.name] = outcome.state
            RECORDER.fact("parity", parity_data(outcome))
            if outcome.state == "not compared":
                RECORDER.finding("golden_not_compared", f"{outcome.name}: {outcome.why}")


def _compare(torch: Any, name: str, fn: Any, inputs: Any, reference: Any, grads: bool) -> Parity:
    target = target_of(torch, fn, reference)
    _refuse(torch)
    batch = Batch(torch, inputs)
    modules = [one for one in (target.module, target.compiled) if isinstance(one, torch.nn.Module)]
    with undisturbed(torch, modules):
        with uncompiled(torch, target.module):
            eager = _eager(torch, target, batch, grads)
            exact, precision = _exact(torch, target, batch, grads, eager)
        with observe_execution() as ran:
            compiled = _compiled(torch, target, batch, grads)
        if not (
            ran.compiled
            or runtime_of(target.compiled) == AOTINDUCTOR
            or (not ran.known and _cached(target.eager))
        ):
            raise NotCompared("nothing of it was compiled")

        def judge_one(result: Result) -> Parity:
            outcome = judge(torch, name, result, eager, exact, precision)
            rounded = (
                _rounded(torch, target, batch, grads, eager) if outcome.state == "failed" else None
            )
            return (
                outcome
                if rounded is None
                else judge(torch, name, result, rounded, exact or eager, precision)
            )

        outcome = judge_one(compiled)
        if outcome.state == "failed":
            outcome = _repeated(torch, target, batch, grads, outcome, judge_one)
        outcome = judge_without_tf32(
            torch, outcome, compiled, _again(torch, name, target, batch, grads, exact, precision)
        )
        return _with_last(torch, target, batch, eager, compiled, outcome)


def _again(
    torch: Any,
    name: str,
    target: Target,
    batch: Batch,
    grads: bool,
    exact: Result | None,
    precision: str,
) -> Again:
    def eager() -> Result:
        with uncompiled(torch, target.module):
            return _eager(torch, target, batch, grads)

    return Again(
        compiled=lambda: _compiled(torch, target, batch, grads),
        eager=eager,
        recompiled=lambda: run_with_empty_cache(torch, target, batch, grads),
        judge=lambda result, reference: judge(torch, name, result, reference, exact, precision),
    )


def _repeated(
    torch: Any,
    target: Target,
    batch: Batch,
    grads: bool,
    outcome: Parity,
    judge: Callable[[Result], Parity],
) -> Parity:
    """A failed batch once more: only what fails twice is certain. What passes when it is compiled with an empty cache is wrong in the
    cache."""
    if judge(_compiled(torch, target, batch, grads)).state != "failed":
        raise NotCompared(
            f"it failed once and passed when it was repeated ({parity_words(outcome)})"
        )
    recompiled = run_with_empty_cache(torch, target, batch, grads)
    if recompiled is not None and judge(recompiled).state == "passed":
        RECORDER.finding(
            "golden_cached_code",
            f"{outcome.name}: fails with cached code, passes when compiled with an empty cache",
        )
        return replace(
            outcome,
            why=clip(
                f"{parity_words(outcome)}; compiled with an empty cache it passes: the cached code is wrong",
                MAX_WHY,
            ),
        )
    return outcome


def _refuse(torch: Any) -> None:
    """Where nothing is compiled a comparison would say that all is well."""
    stance = getattr(
        getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None), "stance", "default"
    )
    if stance == "force_eager":
        raise NotCompared("torch's stance is force_eager: nothing runs compiled")
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1" or getattr(
        importlib.import_module("torch._dynamo").config, "disable", False
    ):
        raise NotCompared("torch.compile is disabled: nothing runs compiled")


def _cached(eager: Any) -> bool:
    """Whether torch holds compiled code for it from an earlier call."""
    held = getattr(
        sys.modules.get("torch._C._dynamo.eval_frame"), "_debug_get_cache_entry_list", None
    )
    code = getattr(getattr(eager, "forward", eager), "__code__", None)
    return held is None or (code is not None and len(held(code)) > 0)


def _eager(torch: Any, target: Target, batch: Batch, grads: bool) -> Result:
    """Twice: what differs then is no fault of the compiler's."""
    first, second = (
        _tried("eager", run, torch, target.eager, batch, target.module, grads=grads)
        for _ in range(2)
    )
    if first.inputs_changed:
        raise NotCompared("it changes its inputs in place")
    if not first.outputs:
        raise NotCompared("it returns no tensor")
    found = all_compared(torch, second, first, None)
    if first.rest != second.rest or worst(found).times > 1.0:
        raise NotCompared(
            "two eager calls differ: it is random, or keeps something from call to call"
        )
    return first


def _rounded(torch: Any, target: Target, batch: Batch, grads: bool, eager: Result) -> Result | None:
    """Eager in TF32, where the job lets a GPU take it; None elsewhere, or where that cannot be had."""
    if not any(is_rough(torch, one) for one in eager.outputs.values()):
        return None
    try:
        with uncompiled(torch, target.module), emulate_tf32(torch):
            rounded = run(torch, target.eager, batch, target.module, grads=grads)
    except Exception:  # noqa: BLE001 - eager as it is remains the reference
        _forget(torch)
        return None
    return rounded if rounded.outputs.keys() == eager.outputs.keys() else None


def _exact(
    torch: Any, target: Target, batch: Batch, grads: bool, eager: Result
) -> tuple[Result | None, str]:
    """The same in the highest precision that is above its own and can be had."""
    kinds = {
        one.dtype
        for one in (*batch.tensors, *eager.outputs.values())
        if one.dtype.is_floating_point or one.dtype.is_complex
    }
    if not kinds or kinds <= {torch.float64, torch.complex128}:
        return None, "eager"
    half = bool(kinds & {torch.float16, torch.bfloat16})
    for dtype in (torch.float64, torch.float32) if half else (torch.float64,):
        try:
            found = precise(torch, target, dtype)
            if found is None:
                continue
            with uncompiled(torch, found[1]):
                exact = run(torch, found[0], batch, found[1], grads=grads, dtype=dtype)
        except Exception:  # noqa: BLE001 - some code knows one precision only: eager alone is the reference then
            _forget(torch)
            continue
        if exact.outputs.keys() == eager.outputs.keys() and any(
            one.dtype == dtype for one in exact.outputs.values()
        ):
            return exact, str(dtype).removeprefix("torch.")
    return None, "eager"


def _compiled(torch: Any, target: Target, batch: Batch, grads: bool) -> Result:
    """More than once on a GPU, where only a later call replays a CUDA graph."""
    begin = getattr(torch.compiler, "cudagraph_mark_step_begin", None)
    on_gpu = any(one.device.type == "cuda" for one in batch.tensors)
    for turn in range(GRAPH_RUNS if on_gpu else 1):
        if begin is not None and on_gpu:
            begin()
        result = _tried("compiled", run, torch, target.compiled, batch, target.module, grads=grads)
        if turn == 0:
            first = result
    return result if result.inputs_changed or not first.inputs_changed else first


def _tried(
    which: str, call: Callable[..., Result], torch: Any, *args: Any, **kwargs: Any
) -> Result:
    try:
        return call(torch, *args, **kwargs)
    except NotCompared:
        raise
    except Exception as error:  # noqa: BLE001 - the batch is the job's, and so is what it raises
        reason = _why(f"the {which} call", error)
    _forget(torch)  # outside of the handler: the exception holds the tensors of the call
    raise NotCompared(reason)


def _forget(torch: Any) -> None:
    """Gives back what a call that failed took, so that the job has it."""
    with suppress(Exception):
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def _why(what: str, error: Exception) -> str:
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return f"{what} ran out of memory"
    with suppress(Exception):
        return clip(
            f"{what} raised {type(error).__name__}: {' '.join(str(error).split())[:200]}", MAX_WHY
        )
    return f"{what} raised {type(error).__name__}"


def _with_last(
    torch: Any, target: Target, batch: Batch, eager: Result, compiled: Result, outcome: Parity
) -> Parity:
    """Beside what the last version gave; what passed is kept for the next one. Whatever goes wrong here takes nothing back."""
    config = RECORDER.config
    if config is None:
        return outcome
    with suppress(Exception):
        version, kept = version_of(config, os.environ), Kept.of(config, outcome.name)
        weights = (
            [] if target.module is None else [*target.module.parameters(), *target.module.buffers()]
        )
        device = next((one.device for one in compiled.outputs.values()), None)
        hardware = (
            torch.cuda.get_device_name(device)
            if device is not None and device.type == "cuda"
            else "cpu"
        )
        now = summary_of(torch, hardware, batch.tensors, weights, compiled.outputs)
        last = kept.last(version)
        if outcome.state == "passed":
            kept.write(version, now)
        if last is not None:
            state, change = against(
                last[1], now, share_alone(torch, next(iter(eager.outputs.values())))
            )
            return replace(
                outcome, last=state, last_version=clip(last[0], MAX_NAME), last_change=change
            )
    return outcome
