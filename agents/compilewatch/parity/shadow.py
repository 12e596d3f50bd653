"""`shadow`: a small share of the calls of a pure function runs uncompiled too, after the answer is there: live speed-up and error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from compilewatch import hotpath
from compilewatch.errors import say
from compilewatch.lines import NESTED, Spec, named
from compilewatch.parity.baseline import NoTraffic
from compilewatch.parity.drawn import NEVER, cannot_be_drawn, drawn
from compilewatch.parity.rule import Compared, compared, worst
from compilewatch.parity.runs import leaves
from compilewatch.parity.state import Before, roots_of
from compilewatch.parity.target import NotCompared, Target, target_of
from compilewatch.parity.told import Totals
from compilewatch.recorder import RECORDER
from compilewatch.runtimes import EAGER
from compilewatch.switch import SWITCH
from compilewatch.watching import is_watched, region_of, watch

T = TypeVar("T", bound=Callable[..., Any])
OUT_OF_MEMORY = "a shadow call ran out of memory: there are none in this process any more"
DREW = 3
_off: list[str] = []
"""Not empty once a shadow call ran out of memory, for ever and for all."""


def shadow(fn: T, rate: float = 0.001) -> T:
    """`fn`, watched; of its calls the share `rate` also runs uncompiled, on copies of the arguments, once the answer is there. For pure
    functions whose tensors are on the CPU: what changes arguments, draws random numbers or keeps something is found out by the first
    drawn calls and left alone from then on; the dashboard says why. The answer is always that of `fn`, and nothing else is raised."""
    try:
        why = cannot_be_drawn(fn) or ("" if 0.0 < rate <= 1.0 else f"rate must be above 0 and at most 1, not {rate!r:.20}")
        if why:
            say(f"shadow() looks at no call of {named(fn)!r:.80}: {why}")
            return fn
        if RECORDER.off_for_good:
            return fn
        watched = fn if is_watched(fn) else watch(fn)
        return drawn(watched, Shadow(watched, rate), region_of(watched)) if is_watched(watched) else watched
    except Exception as error:  # noqa: BLE001 - the job goes on with its own callable
        RECORDER.internal_error(error)
        return fn


class _Seen(NamedTuple):
    """What is known of a drawn call before it is made."""

    torch: Any
    target: Target
    before: Before


class Shadow:
    """The drawn calls of one callable; one at a time over all threads."""

    def __init__(self, fn: Any, rate: float) -> None:
        self.every = max(1, round(1.0 / rate))
        self._fn = fn
        self._target: Target | None = None
        self._eager: Callable[..., Any] | None = None
        self._warm, self._drew = False, 0
        self._totals = Totals("shadow", region_of(fn))
        self._turn = threading.Lock()

    def take(self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.every >= NEVER or hotpath.tracing() or not self._turn.acquire(blocking=False):
            return call()
        try:
            seen = self._guarded(lambda: self._before(args, kwargs))
            stretch, began = RECORDER.epoch, time.perf_counter()
            answer = call()
            seconds = time.perf_counter() - began
            if seen is not None and RECORDER.epoch == stretch:
                self._guarded(lambda: self._after(seen, args, kwargs, answer, seconds))
            return answer
        finally:
            self._turn.release()

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """What the step answers, or None: nothing that goes wrong in it reaches the job."""
        try:
            return step()
        except NotCompared as reason:
            why = str(reason)
        except Exception as error:  # noqa: BLE001 - what a shadow call raises is no matter of the job's
            why = OUT_OF_MEMORY if out_of_memory(error) else f"the eager call raised {named(type(error).__name__)}"
        if why == OUT_OF_MEMORY:
            _off.append(why)
        self._refuse(why)
        return None

    def _refuse(self, why: str) -> None:
        """For good: what was found out once is not tried again."""
        self.every, self._totals.refused = NEVER, why
        self._target = self._eager = None
        self._totals.tell()

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Seen | None:
        """None where this call says nothing: the agent is off, something compiles, or the dashboard's switch holds."""
        torch: Any = sys.modules.get("torch")
        if _off:
            raise NotCompared(_off[0])
        if torch is None or RECORDER.lines is None or RECORDER.compiling.frames() or SWITCH.cause()[0]:
            return None
        self._target = self._target or _pure_target(torch, self._fn)
        for one in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(one, torch.Tensor):
                _refuse_tensor(torch, one, "argument")
        target = self._target
        return _Seen(torch, target, Before(torch, roots_of(target.eager, target.module, args, kwargs)))

    def _after(self, seen: _Seen, args: tuple[Any, ...], kwargs: dict[str, Any], answer: Any, seconds: float) -> None:
        torch, target, before = seen
        if self._left(before):
            return
        for one in torch.utils._pytree.tree_leaves(answer):
            if isinstance(one, torch.Tensor):
                _refuse_tensor(torch, one, "output")
        if self._eager is None:
            self._eager = torch.compiler.disable(_calling(target))
        copies = _copied(torch, (args, kwargs))
        again = Before(torch, roots_of(target.eager, target.module, *copies))
        with NoTraffic(RECORDER.register(self._spec)):
            began = time.perf_counter()
            eager = self._eager(*copies[0], **copies[1])
            took = time.perf_counter() - began
        if self._left(again):
            return
        self._totals.add(self._compare(torch, answer, eager))
        if self._warm:  # the first eager call pays for what later ones find ready
            self._time(seconds, took, args, kwargs)
        self._warm = True
        self._totals.tell()

    def _left(self, before: Before) -> bool:
        """Whether nothing is to be made of this call. Random numbers may be another thread's: they have to be drawn time after time."""
        if left := before.left():
            raise NotCompared(left)
        self._drew = self._drew + 1 if before.drew() else 0
        if self._drew >= DREW:
            raise NotCompared("it draws random numbers")
        return self._drew > 0

    @property
    def _spec(self) -> Spec:
        return Spec(self._totals.region, runtime=EAGER)

    def _time(self, compiled: float, eager: float, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Beside the calls of the region, as what eager takes: no traffic."""
        self._totals.timed += 1
        self._totals.compiled_seconds += compiled
        self._totals.eager_seconds += eager
        key = RECORDER.register(self._spec) + NESTED + hotpath.bucket_of(args, kwargs)
        RECORDER.line(key).plain.append(eager)

    def _compare(self, torch: Any, compiled: Any, eager: Any) -> Compared:
        with torch.no_grad(), torch.inference_mode(False):
            mine, rest = leaves(torch, compiled)
            theirs, other = leaves(torch, eager)
            if mine.keys() != theirs.keys() or rest != other:
                return Compared(
                    "output", 0.0, 0.0, 0.0, 0, 0, False, "the answer has another structure, or another value, compiled than eager"
                )
            if not theirs:
                raise NotCompared("it returns no tensor")
            for one in theirs.values():
                _refuse_tensor(torch, one, "output")
            found = [compared(torch, place, mine[place].detach(), one.detach(), None) for place, one in theirs.items()]
            self._totals.outputs = len(theirs)
            self._totals.dtype = str(next(iter(theirs.values())).dtype).removeprefix("torch.")
            shares = [_share(one, theirs) for one in found if not one.wrong]
            self._totals.relative = max([self._totals.relative or 0.0, *shares])
            return worst(found)._replace(
                nonfinite=sum(one.nonfinite for one in found), eager_nonfinite=sum(one.eager_nonfinite for one in found)
            )


def _share(one: Compared, theirs: dict[str, Any]) -> float:
    """The error as a share of the output's size."""
    eager = theirs[one.where.removeprefix("one value of ")].detach().abs().double()
    size = float(eager.max() if one.where not in theirs else eager.square().mean().sqrt())
    return one.error / size if 0.0 < size < float("inf") else 0.0


def _pure_target(torch: Any, fn: Any) -> Target:
    target = target_of(torch, fn, None)
    parts = () if target.module is None else target.module.modules()
    if any(getattr(part, "_compiled_call_impl", None) is not None for part in list(parts)[1:]):
        raise NotCompared("a part of it is compiled by itself")
    for one in () if target.module is None else (*target.module.parameters(), *target.module.buffers()):
        if one.device.type != "cpu":
            raise NotCompared(f"its weights are on {one.device.type}: shadow calls are for dense tensors on the CPU")
    return target


def _calling(target: Target) -> Callable[..., Any]:
    """The uncompiled callable; what `Module.compile()` put into a module is passed by, for this call alone."""
    eager = target.module._call_impl if target.eager is target.module else target.eager

    def eagerly(*args: Any, **kwargs: Any) -> Any:
        return eager(*args, **kwargs)

    return eagerly


def _refuse_tensor(torch: Any, one: Any, what: str) -> None:
    if type(one) not in (torch.Tensor, torch.nn.Parameter):
        raise NotCompared(f"its {what} is a {named(type(one).__name__)}")
    if one.device.type != "cpu" or one.layout is not torch.strided:
        where = f"on {one.device.type}" if one.device.type != "cpu" else "sparse"
        raise NotCompared(f"its {what} is {where}: shadow calls are for dense tensors on the CPU")


def _copied(torch: Any, tree: Any) -> Any:
    """Copies whose changes are noticed, even those of tensors that keep no account of them."""

    def copy(one: Any) -> Any:
        return one.detach().clone().requires_grad_(one.requires_grad) if isinstance(one, torch.Tensor) else one

    with torch.inference_mode(False), torch.no_grad():
        return torch.utils._pytree.tree_map(copy, tree)


def out_of_memory(error: BaseException) -> bool:
    """Whether that is what it says; on the CPU torch raises no class of its own for it."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    with suppress(Exception):
        return "can't allocate memory" in str(error) or "not enough memory" in str(error)
    return False
