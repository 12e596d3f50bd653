"""Shadow calls: a sampled share of a pure function's calls also runs eager.

They run after the answer is ready, and measure the live speed-up and the live error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from compilewatch.errors import ComparisonError, warn_user
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import is_watched, region_of, watch
from compilewatch.instrument.kill_switch import KILL_SWITCH
from compilewatch.numerics.compare_outputs import Pair, compare_pairs, pair_outputs
from compilewatch.numerics.eager_timing import UntrackedTraffic
from compilewatch.numerics.live_results import Totals
from compilewatch.numerics.reference_models import Target, compiled_methods, target_of, tensors_of
from compilewatch.numerics.sampled_calls import NEVER, sample_calls, sampling_obstacle
from compilewatch.numerics.side_effects import Snapshot, roots_of
from compilewatch.numerics.tolerance import Comparison
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import NESTED_BIT, RegionSpec, safe_text
from compilewatch.recording.runtime_names import EAGER
from compilewatch.sources.cuda.deferred_reads import DEFERRED_READS, CallTimer, gpu_of

T = TypeVar("T", bound=Callable[..., Any])
OUT_OF_MEMORY = "a shadow call ran out of memory: shadow calls are off in this process"
MAX_RANDOM_CALLS = 3
"""Consecutive sampled calls that draw random numbers before the callable counts as random."""
_off: list[str] = []
"""Not empty after a shadow call has run out of memory, which ends all shadow calls."""


def shadow(fn: T, rate: float = 0.001) -> T:
    """Watches `fn` and also runs the share `rate` of its calls uncompiled.

    The eager call runs on copies of the arguments, after the answer is ready. `fn` must be a pure
    function with tensors on the CPU or on one GPU; the check never waits for a GPU. The first
    sampled calls detect a function that changes its arguments, draws random numbers or keeps state.
    Its shadow calls end then, and the dashboard shows the reason. Answer and exceptions are always
    those of `fn`."""
    try:
        why = sampling_obstacle(fn) or (
            "" if 0.0 < rate <= 1.0 else f"rate must be above 0 and at most 1, not {rate!r:.20}"
        )
        if why:
            warn_user(f"shadow() samples no call of {safe_text(fn)!r:.80}: {why}")
            return fn
        if RECORDER.is_disabled:
            return fn
        watched = fn if is_watched(fn) else watch(fn)
        return (
            sample_calls(watched, ShadowSampler(watched, rate), region_of(watched))
            if is_watched(watched)
            else watched
        )
    except Exception as error:  # noqa: BLE001 - the job continues with its own callable
        RECORDER.record_internal_error(error)
        return fn


class _SampledCall(NamedTuple):
    """State before a sampled call."""

    torch: Any
    target: Target
    before: Snapshot
    device: Any
    """The GPU of the tensors; None for the CPU."""


class ShadowSampler:
    """The sampled calls of one callable; one at a time across all threads."""

    def __init__(self, fn: Any, rate: float) -> None:
        self.interval = max(1, round(1.0 / rate))
        self._fn = fn
        self._target: Target | None = None
        self._eager: Callable[..., Any] | None = None
        self._warm, self._drew = False, 0
        self._totals = Totals("shadow", region_of(fn))
        self._turn = threading.Lock()

    def handle_call(
        self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if self.interval >= NEVER or hotpath.is_tracing() or not self._turn.acquire(blocking=False):
            return call()
        try:
            sampled = self._run_step(lambda: self._prepare(args, kwargs))
            if sampled is None:
                return call()
            epoch = RECORDER.compile_step
            timed = CallTimer(sampled.torch, sampled.device)
            answer = call()
            timed.stop()
            if RECORDER.compile_step == epoch:
                self._run_step(lambda: self._shadow(sampled, args, kwargs, answer, timed))
            return answer
        finally:
            self._turn.release()

    def _run_step(self, step: Callable[[], Any]) -> Any:
        """Runs the step; returns None after an error, which never reaches the job."""
        try:
            return step()
        except ComparisonError as reason:
            why = str(reason)
        except Exception as error:  # noqa: BLE001 - an error of a shadow call is not the job's
            why = (
                OUT_OF_MEMORY
                if is_out_of_memory(error)
                else f"the eager call raised {safe_text(type(error).__name__)}"
            )
        if why == OUT_OF_MEMORY:
            _off.append(why)
        self._refuse(why)
        return None

    def _refuse(self, why: str) -> None:
        """Ends shadow calls of this callable permanently."""
        with self._totals.lock:
            self.interval, self._totals.refused = NEVER, why
            self._target = self._eager = None
            self._totals.report()

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _SampledCall | None:
        """Takes the state before the call; None if this call cannot be compared.

        That is so while the agent is off, during a compilation, and under the kill switch."""
        torch: Any = sys.modules.get("torch")
        if _off:
            raise ComparisonError(_off[0])
        if (
            torch is None
            or RECORDER.buffers is None
            or RECORDER.active_compiles.frames()
            or KILL_SWITCH.eager_cause()[0]
        ):
            return None
        target = self._target = self._target or _pure_target(torch, self._fn)
        used = [
            one
            for one in torch.utils._pytree.tree_leaves((args, kwargs))
            if isinstance(one, torch.Tensor)
        ]
        for one in used:
            _refuse_tensor(torch, one, "argument")
        device = gpu_of([*used, *tensors_of(target)], "weights and arguments are")
        if device is not None and not DEFERRED_READS.has_room(torch):
            return None
        return _SampledCall(
            torch,
            target,
            Snapshot(torch, roots_of(target.eager, target.module, args, kwargs)),
            device,
        )

    def _shadow(
        self,
        sampled: _SampledCall,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        answer: Any,
        compiled: CallTimer,
    ) -> None:
        torch, target, before, device = sampled
        if self._must_skip(before):
            return
        for one in torch.utils._pytree.tree_leaves(answer):
            if isinstance(one, torch.Tensor):
                _refuse_tensor(torch, one, "output")
        if self._eager is None:
            self._eager = torch.compiler.disable(_eager_of(target))
        copies = _copy_tensors(torch, (args, kwargs))
        again = Snapshot(torch, roots_of(target.eager, target.module, *copies))
        with UntrackedTraffic(RECORDER.register(self._spec)):
            timed = CallTimer(torch, device)
            eager = self._eager(*copies[0], **copies[1])
            timed.stop()
        if self._must_skip(again):
            return
        pairs = pair_outputs(torch, answer, eager, on_gpu=device is not None)
        key = RECORDER.register(self._spec) + NESTED_BIT + hotpath.bucket_of(args, kwargs)
        # The first eager call of a process pays one-time costs, so its times are left out.
        warm, self._warm = self._warm, True
        times = (compiled, timed) if warm else None
        if device is None:
            self._count(torch, pairs, key, times)
        else:
            DEFERRED_READS.add(
                torch, device, lambda: self._run_step(lambda: self._count(torch, pairs, key, times))
            )

    def _count(
        self,
        torch: Any,
        pairs: list[Pair] | Comparison,
        key: int,
        times: tuple[CallTimer, CallTimer] | None,
    ) -> None:
        """Counts a call whose results are complete."""
        with self._totals.lock:
            if isinstance(pairs, Comparison):
                self._totals.add(pairs)
            else:
                found, share = compare_pairs(torch, pairs)
                self._totals.outputs, self._totals.dtype = (
                    len(pairs),
                    str(pairs[0].eager.dtype).removeprefix("torch."),
                )
                self._totals.relative = max(self._totals.relative or 0.0, share)
                self._totals.add(found)
            if times is not None:
                self._time(key, *times)
            self._totals.report()

    def _must_skip(self, before: Snapshot) -> bool:
        """True if this call cannot be compared; raises ComparisonError for a side effect.

        Another thread may have drawn the random numbers, so only `MAX_RANDOM_CALLS` calls in a row
        prove that this callable draws them."""
        if effect := before.describe_effect():
            raise ComparisonError(effect)
        self._drew = self._drew + 1 if before.has_drawn() else 0
        if self._drew >= MAX_RANDOM_CALLS:
            raise ComparisonError("it draws random numbers")
        return self._drew > 0

    @property
    def _spec(self) -> RegionSpec:
        return RegionSpec(self._totals.region, runtime=EAGER)

    def _time(self, key: int, compiled: CallTimer, eager: CallTimer) -> None:
        """Records the eager time next to the calls of the region; it is not traffic."""
        self._totals.timed += 1
        self._totals.compiled_seconds += compiled.seconds
        self._totals.eager_seconds += eager.seconds
        line = RECORDER.add_buffer(key)
        line.plain.append(eager.host_seconds)
        if (on_gpu := eager.gpu_seconds) is not None:
            line.gpu.append(on_gpu)


def _pure_target(torch: Any, fn: Any) -> Target:
    target = target_of(torch, fn, None)
    parts = () if target.module is None else target.module.modules()
    if any(
        getattr(part, "_compiled_call_impl", None) is not None or compiled_methods(part)
        for part in list(parts)[1:]
    ):
        raise ComparisonError("a part of it is compiled separately")
    gpu_of(tensors_of(target), "weights are")
    return target


def _eager_of(target: Target) -> Callable[..., Any]:
    """The uncompiled callable, past the implementation that `Module.compile()` installed."""
    eager = target.module._call_impl if target.eager is target.module else target.eager

    def call_eager(*args: Any, **kwargs: Any) -> Any:
        return eager(*args, **kwargs)

    return call_eager


def _refuse_tensor(torch: Any, one: Any, what: str) -> None:
    if type(one) not in (torch.Tensor, torch.nn.Parameter):
        raise ComparisonError(f"its {what} is a {safe_text(type(one).__name__)}")
    if one.layout is not torch.strided:
        raise ComparisonError(f"its {what} is sparse: shadow calls are for dense tensors")
    gpu_of([one], f"{what} is")


def _copy_tensors(torch: Any, tree: Any) -> Any:
    """Copies of the tensors that have a version counter, which inference tensors lack."""

    def copy(one: Any) -> Any:
        return (
            one.detach().clone().requires_grad_(one.requires_grad)
            if isinstance(one, torch.Tensor)
            else one
        )

    with torch.inference_mode(False), torch.no_grad():
        return torch.utils._pytree.tree_map(copy, tree)


def is_out_of_memory(error: BaseException) -> bool:
    """True for an out-of-memory error; on the CPU torch raises a plain RuntimeError for it."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    with suppress(Exception):
        return "can't allocate memory" in str(error) or "not enough memory" in str(error)
    return False
