"""NaN check: counts NaN and infinite values in the answers of sampled calls; off by default."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from compilewatch.errors import NotCompared, say
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import is_watched, region_of
from compilewatch.numerics.isolated_run import leaves
from compilewatch.numerics.live_results import Totals
from compilewatch.numerics.sampled_calls import NEVER, cannot_be_drawn, drawn
from compilewatch.numerics.tolerance import Compared
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import named
from compilewatch.sources.cuda.deferred_reads import LATER, one_gpu

EVERY = 100
"""One call in `EVERY` is checked: reading an answer a second time costs time."""
AT_ONCE = 1 << 24
"""Values that are checked at once, so that the temporary memory does not raise the peak."""


def finite_looked_at(watched: Any, asked: bool) -> Any:
    """Adds the check to a watched callable.

    `asked`: the caller enabled the check for this callable, so a refusal is printed."""
    why = cannot_be_drawn(watched)
    if why or not is_watched(watched):
        if asked:
            say(
                f"watch(finite=True) checks no answer of {named(watched)!r:.80}: "
                f"{why or 'it is not watched'}"
            )
        return watched
    return drawn(watched, Finite(watched, asked), region_of(watched))


class Finite:
    """The sampled calls of one callable."""

    def __init__(self, fn: Any, asked: bool) -> None:
        self.every = EVERY
        self._asked = asked
        self._totals = Totals("finite", region_of(fn))
        self._turn = threading.Lock()

    def take(self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = call()
        if (
            self.every >= NEVER
            or hotpath.tracing()
            or RECORDER.lines is None
            or not self._turn.acquire(blocking=False)
        ):
            return answer
        try:
            self._run_step(lambda: self._check(answer))
        finally:
            self._turn.release()
        return answer

    def _run_step(self, step: Callable[[], None]) -> None:
        """Runs the step; an error ends the check and never reaches the job."""
        try:
            step()
        except NotCompared as reason:
            self._refuse(str(reason))
        except Exception as error:  # noqa: BLE001 - the job's call has already succeeded
            self._refuse(f"checking the answer raised {named(type(error).__name__)}")

    def _refuse(self, why: str) -> None:
        with self._totals.alone:
            self.every, self._totals.refused = NEVER, why
            if self._asked or self._totals.samples:
                self._totals.tell()

    def _check(self, answer: Any) -> None:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return
        with torch.no_grad():
            outputs = {
                place: one
                for place, one in leaves(torch, answer)[0].items()
                if one.is_floating_point() or one.is_complex()
            }
            if not outputs:
                raise NotCompared("it returns no tensor of floating-point numbers")
            device = one_gpu(outputs.values(), "output is")
            if device is not None and not LATER.has_room(torch):
                return
            counts = {place: _count_nonfinite(torch, one) for place, one in outputs.items()}
        dtype = str(next(iter(outputs.values())).dtype).removeprefix("torch.")
        if device is None:
            self._count(dtype, counts)
        else:
            LATER.add(torch, device, lambda: self._run_step(lambda: self._count(dtype, counts)))

    def _count(self, dtype: str, counts: dict[str, Any]) -> None:
        """Reads the counts; waits for the GPU if it has not finished them."""
        found = [
            Compared(place, 0.0, 0.0, 0.0, int(count), 0, False) for place, count in counts.items()
        ]
        worst = max(found, key=lambda one: one.nonfinite)
        total = sum(one.nonfinite for one in found)
        with self._totals.alone:
            self._totals.outputs, self._totals.dtype = len(found), dtype
            self._totals.add(worst._replace(nonfinite=total, error=float(bool(total))))
            self._totals.tell()


def _count_nonfinite(torch: Any, one: Any) -> Any:
    """Counts NaN and infinite values: a number, or on a GPU a tensor of one value, without waiting.

    On the CPU a finite sum proves that all values are finite, and takes a fraction of the time."""
    one = one.detach()
    if one.device.type == "cpu" and bool(torch.isfinite(one.sum())):
        return 0
    values = one.reshape(-1) if one.is_contiguous() else one
    return sum((~torch.isfinite(part)).sum() for part in values.split(AT_ONCE))
