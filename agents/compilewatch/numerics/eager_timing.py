"""Eager baseline: the time that a callable takes uncompiled, measured before traffic.

The dashboard compares this time with the compiled calls and computes when compilation pays off."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError, warn_user
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import region_of
from compilewatch.instrument.timed_call import TimedCall, start_call
from compilewatch.numerics.isolated_run import Batch, preserve_state
from compilewatch.numerics.reference_models import Target, run_uncompiled, target_of, tensors_of
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec, safe_text
from compilewatch.recording.runtime_names import EAGER
from compilewatch.sources.cuda.deferred_reads import CallTimer, gpu_of

WARM_UPS = 3
MAX_SECONDS = 10.0
"""The measurement stops after this time, even if fewer calls than requested were timed."""
OLD_NAME_REMOVED_IN = "0.2.0"
"""The release that removes `baseline`, the earlier name of `eager_baseline`."""
_warned: list[bool] = []
"""Not empty once this process has warned about the earlier name."""


class EagerBaseline(NamedTuple):
    """Result of a measurement: timed calls, their mean in seconds, and a one-line summary.

    For calls on one GPU the mean is GPU time."""

    region: str
    calls: int
    seconds: float
    text: str


def eager_baseline(fn: Callable[..., Any], inputs: Any, calls: int = 50) -> EagerBaseline:
    """Times `fn` uncompiled with a batch, before traffic; the calls are not counted as traffic.

    The calls are reported next to those of the same region, as eager. `inputs` is a tuple of
    arguments, a dict of keyword arguments, or one argument, with the shapes of traffic. The
    function waits for the GPU between calls and takes at most 10 s. Never raises. Modes, buffers
    and random state stay unchanged."""
    region = ""
    try:
        if hotpath.is_tracing():
            raise ComparisonError("it was called inside a compilation")
        if RECORDER.buffers is None:
            raise ComparisonError("the agent is off")
        region = region_of(fn)
        torch = importlib.import_module("torch")
        seconds = _time_calls(
            torch, target_of(torch, fn, None), Batch(torch, inputs), region, calls
        )
    except ComparisonError as reason:
        return EagerBaseline(region, 0, 0.0, f"not measured: {reason}")
    except Exception as error:  # noqa: BLE001 - the batch belongs to the job and may raise anything
        return EagerBaseline(
            region, 0, 0.0, f"not measured: the eager call raised {safe_text(type(error).__name__)}"
        )
    mean = sum(seconds) / len(seconds)
    text = f"{len(seconds)} eager calls, {1000 * mean:.3g} ms on average"
    RECORDER.record_fact(
        "mark",
        {
            "name": "eager baseline measured",
            "region": region,
            "calls": len(seconds),
            "seconds": round(mean, 9),
        },
    )
    return EagerBaseline(region, len(seconds), mean, text)


def baseline(fn: Callable[..., Any], inputs: Any, calls: int = 50) -> EagerBaseline:
    """Deprecated name of `eager_baseline`; warns once per process."""
    if not _warned:
        _warned.append(True)
        text = (
            "compilewatch.baseline is deprecated: use compilewatch.eager_baseline. "
            f"Release {OLD_NAME_REMOVED_IN} removes the old name."
        )
        try:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        except DeprecationWarning:  # a filter turns warnings into errors; this call never raises
            warn_user(text)
    return eager_baseline(fn, inputs, calls)


def _time_calls(torch: Any, target: Target, batch: Batch, region: str, calls: int) -> list[float]:
    spec = RegionSpec(region, runtime=EAGER)
    base = RECORDER.register(spec)
    modules = [one for one in (target.module, target.compiled) if isinstance(one, torch.nn.Module)]
    buffers = (
        []
        if target.module is None
        else [(one, one.detach().clone()) for one in target.module.buffers()]
    )
    try:
        with (
            preserve_state(torch, modules),
            run_uncompiled(torch, target.module),
            UntrackedTraffic(base),
        ):
            deadline, seconds = time.perf_counter() + MAX_SECONDS, list[float]()
            for number in range(WARM_UPS):
                if number == 0 or time.perf_counter() < deadline:
                    _time_call(torch, target, batch, None, base)
            while not seconds or (len(seconds) < calls and time.perf_counter() < deadline):
                seconds.append(_time_call(torch, target, batch, spec, base))
            return seconds
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _time_call(
    torch: Any, target: Target, batch: Batch, spec: RegionSpec | None, base: int
) -> float:
    """Times one call with fresh inputs, as its caller sees it; the GPU is idle at the start."""
    inputs = batch.copy_inputs()
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
    running = None if spec is None else start_call(TimedCall, spec, base, args, kwargs)
    timed = CallTimer(torch, _gpu_of(target, batch))
    try:
        target.eager(*args, **kwargs)
    except BaseException:
        if running is not None:
            running.finish(error=True)
        raise
    timed.stop()
    if running is not None:
        running.finish()
        if (on_gpu := timed.gpu_seconds) is not None:
            running.buffer.gpu.append(on_gpu)
    return timed.seconds


def _gpu_of(target: Target, batch: Batch) -> Any:
    """The GPU that the target runs on; None for the CPU or for several GPUs."""
    try:
        return gpu_of([*tensors_of(target), *batch.tensors], "batch is")
    except ComparisonError:
        return None


class UntrackedTraffic:
    """Context in which calls are counted as nested in another region, not as traffic.

    The call rates and shares of a version include only the calls of its own callers."""

    def __init__(self, base: int) -> None:
        self._around = RECORDER.add_buffer(base)
        self._call = RECORDER.get_thread_state()

    def __enter__(self) -> None:
        self._outer, self._call.buffer = self._call.buffer, self._call.buffer or self._around

    def __exit__(self, *_: object) -> None:
        self._call.buffer = self._outer
