"""NaN check: counts NaN and infinite values in the answers of sampled calls; off by default."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from compilewatch.errors import ComparisonError, warn_user
from compilewatch.instrument import hotpath
from compilewatch.instrument.api import is_watched, region_of
from compilewatch.numerics.isolated_run import split_leaves
from compilewatch.numerics.live_results import Totals
from compilewatch.numerics.sampled_calls import NEVER, sample_calls, sampling_obstacle
from compilewatch.numerics.tolerance import Comparison
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import safe_text
from compilewatch.sources.cuda.deferred_reads import DEFERRED_READS, gpu_of

SAMPLE_INTERVAL = 100
"""One call in `SAMPLE_INTERVAL` is checked: reading an answer a second time costs time."""
CHUNK_VALUES = 1 << 24
"""Values that are checked at once, so that the temporary memory does not raise the peak."""


def add_nan_check(watched: Any, asked: bool) -> Any:
    """Adds the check to a watched callable.

    `asked`: the caller enabled the check for this callable, so a refusal is printed."""
    why = sampling_obstacle(watched)
    if why or not is_watched(watched):
        if asked:
            warn_user(
                f"watch(finite=True) checks no answer of {safe_text(watched)!r:.80}: "
                f"{why or 'it is not watched'}"
            )
        return watched
    return sample_calls(watched, NanCheck(watched, asked), region_of(watched))


class NanCheck:
    """The sampled calls of one callable."""

    def __init__(self, fn: Any, asked: bool) -> None:
        self.interval = SAMPLE_INTERVAL
        self._asked = asked
        self._totals = Totals("finite", region_of(fn))
        self._turn = threading.Lock()

    def handle_call(
        self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        answer = call()
        if (
            self.interval >= NEVER
            or hotpath.is_tracing()
            or RECORDER.buffers is None
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
        except ComparisonError as reason:
            self._refuse(str(reason))
        except Exception as error:  # noqa: BLE001 - the job's call has already succeeded
            self._refuse(f"checking the answer raised {safe_text(type(error).__name__)}")

    def _refuse(self, why: str) -> None:
        with self._totals.lock:
            self.interval, self._totals.refused = NEVER, why
            if self._asked or self._totals.samples:
                self._totals.report()

    def _check(self, answer: Any) -> None:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return
        with torch.no_grad():
            outputs = {
                place: one
                for place, one in split_leaves(torch, answer)[0].items()
                if one.is_floating_point() or one.is_complex()
            }
            if not outputs:
                raise ComparisonError("it returns no tensor of floating-point numbers")
            device = gpu_of(outputs.values(), "output is")
            if device is not None and not DEFERRED_READS.has_room(torch):
                return
            counts = {place: _count_nonfinite(torch, one) for place, one in outputs.items()}
        dtype = str(next(iter(outputs.values())).dtype).removeprefix("torch.")
        if device is None:
            self._count(dtype, counts)
        else:
            DEFERRED_READS.add(
                torch, device, lambda: self._run_step(lambda: self._count(dtype, counts))
            )

    def _count(self, dtype: str, counts: dict[str, Any]) -> None:
        """Reads the counts; waits for the GPU if it has not finished them."""
        found = [
            Comparison(place, 0.0, 0.0, 0.0, int(count), 0, False)
            for place, count in counts.items()
        ]
        worst = max(found, key=lambda one: one.nonfinite)
        total = sum(one.nonfinite for one in found)
        with self._totals.lock:
            self._totals.outputs, self._totals.dtype = len(found), dtype
            self._totals.add(worst._replace(nonfinite=total, error=float(bool(total))))
            self._totals.report()


def _count_nonfinite(torch: Any, one: Any) -> Any:
    """Counts NaN and infinite values: a number, or on a GPU a tensor of one value, without waiting.

    On the CPU a finite sum proves that all values are finite, and takes a fraction of the time."""
    one = one.detach()
    if one.device.type == "cpu" and bool(torch.isfinite(one.sum())):
        return 0
    values = one.reshape(-1) if one.is_contiguous() else one
    return sum((~torch.isfinite(part)).sum() for part in values.split(CHUNK_VALUES))
