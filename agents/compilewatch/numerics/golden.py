"""Golden batch: the compiled callable and eager run the same fixed batch before traffic.

The check is differential testing with a higher-precision oracle:

1. Eager runs twice. A callable that disagrees with itself is random or stateful: not compared.
2. Eager runs once more in a higher precision (`float64`, or `float32` for a half-precision model).
   A mode or a memory limit that prevents this leaves plain eager as the reference.
3. The compiled callable runs; on a GPU three times, because only a later call replays a CUDA graph.
4. `tolerance` compares the compiled error with eager's own error, both against the higher
   precision.
5. A failure must reproduce. A recompilation with an empty cache separates a wrong cache entry from
   a wrong compiler. TF32 on a GPU is allowed for, and a pass is repeated with TF32 off
   (`tf32_rerun`).

Invariants: `golden` never raises. Inputs, buffers, gradients, random state, training mode and grad
mode are the same after it as before it (`isolated_run`). Runs are not counted as traffic. Only the
model's own thread calls it, before traffic: it waits for the GPU, so it takes no lock.

Cost: four calls of the model (six on a GPU) and one copy of its weights in the higher precision.
Source: the two-reference check of PyTorch's own accuracy tests, `torch._dynamo.utils.same`."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError
from compilewatch.identity.identity import version_of
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import region_of
from compilewatch.instrument.runtime import runtime_of
from compilewatch.numerics.comparison import judge_result
from compilewatch.numerics.empty_cache import run_with_empty_cache
from compilewatch.numerics.execution import Execution, observe_execution
from compilewatch.numerics.golden_history import GoldenHistory, compare_summaries, summarize
from compilewatch.numerics.golden_runs import (
    describe_error,
    run_compiled,
    run_eager,
    run_exact,
    run_in_tf32,
)
from compilewatch.numerics.isolated_run import Batch, Result, preserve_state
from compilewatch.numerics.reference_models import Target, run_uncompiled, target_of, tensors_of
from compilewatch.numerics.tf32_rerun import RerunPlan, judge_without_tf32
from compilewatch.numerics.tolerance import eager_only_share
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import safe_text
from compilewatch.recording.runtime_names import AOTINDUCTOR
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import (
    MAX_GOLDENS,
    MAX_NAME,
    MAX_WHY,
    Parity,
    parity_data,
    parity_words,
)

_reported_states: dict[str, str] = {}
"""The state last reported for each name."""


class Golden(NamedTuple):
    """Result of a golden batch. `state` is `passed`, `failed` or `not compared`.

    `text` describes the result in one line."""

    name: str
    state: str
    text: str
    parity: Parity
    required: bool = False

    @property
    def failed(self) -> bool:
        """True if the results differ, or if a required batch was not compared."""
        return self.state == "failed" or (self.required and self.state != "passed")


def golden(
    name: str,
    fn: Callable[..., Any],
    inputs: Any,
    reference: Callable[..., Any] | None = None,
    grads: bool = False,
    required: bool = False,
) -> Golden:
    """Compares `fn` with eager (or `reference`) on a fixed batch, before traffic.

    Both are compared with a run in a higher precision. `inputs` is a tuple of arguments, a dict of
    keyword arguments, or one argument. `grads` also compares gradients. A batch that cannot be
    compared is a finding; with `required` its `failed` is true. Call this function on the thread
    that loads the model: it waits for the GPU. Never raises. Inputs, buffers, gradients, random
    state and modes stay unchanged."""
    label, region, start = clip(safe_text(name), MAX_NAME), "", time.perf_counter()
    try:
        if hotpath.is_tracing():
            raise ComparisonError("it was called inside a compilation")
        if RECORDER.buffers is None:
            raise ComparisonError("the agent is off")
        region = clip(region_of(fn), MAX_NAME)
        outcome = _compare(importlib.import_module("torch"), label, fn, inputs, reference, grads)
    except ComparisonError as reason:
        outcome = Parity(label, "not compared", clip(str(reason), MAX_WHY))
    except Exception as error:  # noqa: BLE001 - the batch belongs to the job and may raise anything
        outcome = Parity(label, "not compared", describe_error("comparing", error))
    outcome = replace(outcome, region=region, seconds=round(time.perf_counter() - start, 3))
    _report(outcome)
    return Golden(label, outcome.state, parity_words(outcome), outcome, bool(required))


def _report(outcome: Parity) -> None:
    """Sends the result as a fact, for at most `MAX_GOLDENS` names per process."""
    with suppress(Exception):
        known = outcome.name in _reported_states or len(_reported_states) < MAX_GOLDENS
        if RECORDER.buffers is not None and known:
            _reported_states[outcome.name] = outcome.state
            RECORDER.record_fact("parity", parity_data(outcome))
            if outcome.state == "not compared":
                RECORDER.record_finding("golden_not_compared", f"{outcome.name}: {outcome.why}")


class _Case(NamedTuple):
    """One golden batch: the callables, the inputs, and whether gradients count."""

    torch: Any
    name: str
    target: Target
    batch: Batch
    grads: bool

    def run_eager(self) -> Result:
        with run_uncompiled(self.torch, self.target.module):
            return run_eager(self.torch, self.target, self.batch, self.grads)

    def run_compiled(self) -> Result:
        return run_compiled(self.torch, self.target, self.batch, self.grads)

    def run_with_empty_cache(self) -> Result | None:
        return run_with_empty_cache(self.torch, self.target, self.batch, self.grads)


def _compare(torch: Any, name: str, fn: Any, inputs: Any, reference: Any, grads: bool) -> Parity:
    target = target_of(torch, fn, reference)
    _refuse_disabled_compiler()
    case = _Case(torch, name, target, Batch(torch, inputs), grads)
    modules = [one for one in (target.module, target.compiled) if isinstance(one, torch.nn.Module)]
    with preserve_state(torch, modules):
        with run_uncompiled(torch, target.module):
            eager = run_eager(torch, target, case.batch, grads)
            exact, precision = run_exact(torch, target, case.batch, grads, eager)
        with observe_execution() as execution:
            compiled = case.run_compiled()
        _refuse_uncompiled(target, execution)

        def judge_again(result: Result) -> Parity:
            return _judge_with_tf32(case, result, eager, exact, precision)

        outcome = judge_again(compiled)
        if outcome.state == "failed":
            outcome = _repeat_failure(case, outcome, judge_again)
        rerun = RerunPlan(
            compiled=case.run_compiled,
            eager=case.run_eager,
            recompiled=case.run_with_empty_cache,
            judge=lambda result, other: judge_result(torch, name, result, other, exact, precision),
        )
        outcome = judge_without_tf32(torch, outcome, compiled, rerun)
        return _compare_with_last_version(case, eager, compiled, outcome)


def _judge_with_tf32(
    case: _Case, result: Result, eager: Result, exact: Result | None, precision: str
) -> Parity:
    """Judges the result; repeats a failure against eager in TF32 if the job allows TF32."""
    outcome = judge_result(case.torch, case.name, result, eager, exact, precision)
    if outcome.state != "failed":
        return outcome
    rounded = run_in_tf32(case.torch, case.target, case.batch, case.grads, eager)
    if rounded is None:
        return outcome
    return judge_result(case.torch, case.name, result, rounded, exact or eager, precision)


def _repeat_failure(
    case: _Case, outcome: Parity, judge_result: Callable[[Result], Parity]
) -> Parity:
    """Repeats a failed batch: only a failure that reproduces is confirmed.

    If a compilation with an empty cache passes, the cached code is wrong."""
    if judge_result(case.run_compiled()).state != "failed":
        raise ComparisonError(
            f"it failed once and passed when it was repeated ({parity_words(outcome)})"
        )
    recompiled = case.run_with_empty_cache()
    if recompiled is None or judge_result(recompiled).state != "passed":
        return outcome
    RECORDER.record_finding(
        "golden_cached_code",
        f"{outcome.name}: fails with cached code, passes when compiled with an empty cache",
    )
    cause = "compiled with an empty cache it passes: the cached code is wrong"
    return replace(outcome, why=clip(f"{parity_words(outcome)}; {cause}", MAX_WHY))


def _refuse_disabled_compiler() -> None:
    """Raises ComparisonError if nothing is compiled: eager would always equal eager."""
    stance = getattr(
        getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None), "stance", "default"
    )
    if stance == "force_eager":
        raise ComparisonError("torch's stance is force_eager: nothing runs compiled")
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1" or getattr(
        importlib.import_module("torch._dynamo").config, "disable", False
    ):
        raise ComparisonError("torch.compile is disabled: nothing runs compiled")


def _refuse_uncompiled(target: Target, execution: Execution) -> None:
    """Raises ComparisonError if the compiled callable ran no compiled code."""
    if not (
        execution.compiled
        or runtime_of(target.compiled) == AOTINDUCTOR
        or (not execution.known and _has_compiled_code(target.eager))
    ):
        raise ComparisonError("nothing of it was compiled")


def _has_compiled_code(eager: Any) -> bool:
    """True if torch holds compiled code of the callable from an earlier call."""
    list_entries = getattr(
        sys.modules.get("torch._C._dynamo.eval_frame"), "_debug_get_cache_entry_list", None
    )
    code = getattr(getattr(eager, "forward", eager), "__code__", None)
    return list_entries is None or (code is not None and len(list_entries(code)) > 0)


def _compare_with_last_version(
    case: _Case, eager: Result, compiled: Result, outcome: Parity
) -> Parity:
    """Adds the comparison with the last version that passed, and stores a result that passed.

    An error here leaves the outcome as it is."""
    torch, config = case.torch, RECORDER.config
    if config is None:
        return outcome
    with suppress(Exception):
        version, history = version_of(config, os.environ), GoldenHistory.open(config, outcome.name)
        hardware = _hardware_of(torch, compiled)
        weights = tensors_of(case.target)
        now = summarize(torch, hardware, case.batch.tensors, weights, compiled.outputs)
        last = history.read_last(version)
        if outcome.state == "passed":
            history.write(version, now)
        if last is not None:
            tolerance = eager_only_share(torch, next(iter(eager.outputs.values())))
            state, change = compare_summaries(last[1], now, tolerance)
            return replace(
                outcome, last=state, last_version=clip(last[0], MAX_NAME), last_change=change
            )
    return outcome


def _hardware_of(torch: Any, result: Result) -> str:
    device = next((one.device for one in result.outputs.values()), None)
    on_gpu = device is not None and device.type == "cuda"
    return torch.cuda.get_device_name(device) if on_gpu else "cpu"
