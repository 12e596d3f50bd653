"""`baseline`: how long the same takes uncompiled, measured beside the traffic, so that the dashboard can say whether compiling pays."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from compilewatch.errors import NotCompared
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import region_of
from compilewatch.instrument.timed_call import Running, begin
from compilewatch.numerics.isolated_run import Batch, undisturbed
from compilewatch.numerics.reference_models import Target, held_by, target_of, uncompiled
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.runtime_names import EAGER
from compilewatch.recording.series_buffer import Spec, named
from compilewatch.sources.cuda.deferred_reads import Timed, one_gpu

WARM_UPS = 3
LONGEST_SECONDS = 10.0
"""After so long it is enough, whatever number of calls was asked for."""


class Baseline(NamedTuple):
    """What came of it: the calls that were timed, their mean in seconds (on the GPU, where they ran on one), and one line about it."""

    region: str
    calls: int
    seconds: float
    text: str


def baseline(fn: Callable[..., Any], inputs: Any, calls: int = 50) -> Baseline:
    """Times `fn` uncompiled with a batch, before traffic, and reports the calls beside those of its region: not as traffic, but as what
    eager takes. `inputs` are a tuple of arguments, a dict of keyword arguments, or one argument, shaped as traffic is. Waits for the
    GPU between calls, 10 s at most in all. Never raises; modes, buffers and random numbers stay as they were."""
    region = ""
    try:
        if hotpath.tracing():
            raise NotCompared("it was called inside a compilation")
        if RECORDER.lines is None:
            raise NotCompared("the agent is off")
        region = region_of(fn)
        torch = importlib.import_module("torch")
        timed = _timed(torch, target_of(torch, fn, None), Batch(torch, inputs), region, calls)
    except NotCompared as reason:
        return Baseline(region, 0, 0.0, f"not measured: {reason}")
    except Exception as error:  # noqa: BLE001 - the batch is the job's, and so is what it raises
        return Baseline(
            region, 0, 0.0, f"not measured: the eager call raised {named(type(error).__name__)}"
        )
    mean = sum(timed) / len(timed)
    text = f"{len(timed)} eager calls, {1000 * mean:.3g} ms on average"
    RECORDER.fact(
        "mark",
        {
            "name": "eager baseline measured",
            "region": region,
            "calls": len(timed),
            "seconds": round(mean, 9),
        },
    )
    return Baseline(region, len(timed), mean, text)


def _timed(torch: Any, target: Target, batch: Batch, region: str, calls: int) -> list[float]:
    spec = Spec(region, runtime=EAGER)
    base = RECORDER.register(spec)
    modules = [one for one in (target.module, target.compiled) if isinstance(one, torch.nn.Module)]
    buffers = (
        []
        if target.module is None
        else [(one, one.detach().clone()) for one in target.module.buffers()]
    )
    try:
        with undisturbed(torch, modules), uncompiled(torch, target.module), NoTraffic(base):
            until, timed = time.perf_counter() + LONGEST_SECONDS, list[float]()
            for turn in range(WARM_UPS):
                if turn == 0 or time.perf_counter() < until:
                    _call(torch, target, batch, None, base)
            while not timed or (len(timed) < calls and time.perf_counter() < until):
                timed.append(_call(torch, target, batch, spec, base))
            return timed
    finally:
        with torch.no_grad():
            for one, before in buffers:
                one.copy_(before)


def _call(torch: Any, target: Target, batch: Batch, spec: Spec | None, base: int) -> float:
    """One call with fresh inputs, timed as its caller would see it; the GPU is idle when it begins."""
    inputs = batch.copies()
    args = (
        ()
        if isinstance(inputs, dict)
        else tuple(inputs)
        if isinstance(inputs, tuple | list)
        else (inputs,)
    )
    kwargs = inputs if isinstance(inputs, dict) else {}
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    running = None if spec is None else begin(Running, spec, base, args, kwargs)
    timed = Timed(torch, _gpu_of(target, batch))
    try:
        target.eager(*args, **kwargs)
    except BaseException:
        if running is not None:
            running.finish(error=True)
        raise
    timed.stop()
    if running is not None:
        running.finish()
        if (on_gpu := timed.on_gpu) is not None:
            running.line.gpu.append(on_gpu)
    return timed.seconds


def _gpu_of(target: Target, batch: Batch) -> Any:
    """The one that it runs on; None for the CPU, and for several."""
    try:
        return one_gpu([*held_by(target), *batch.tensors], "batch is")
    except NotCompared:
        return None


class NoTraffic:
    """Within it calls are counted as made by another region: the rates and shares of a version are those of its callers."""

    def __init__(self, base: int) -> None:
        self._around = RECORDER.line(base)
        self._call = RECORDER.call()

    def __enter__(self) -> None:
        self._outer, self._call.line = self._call.line, self._call.line or self._around

    def __exit__(self, *_: object) -> None:
        self._call.line = self._outer
