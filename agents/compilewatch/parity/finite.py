"""NaN and infinite values in what watched calls answer: some calls are looked at, where somebody asked for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from compilewatch import hotpath
from compilewatch.errors import say
from compilewatch.lines import named
from compilewatch.parity.drawn import NEVER, cannot_be_drawn, drawn
from compilewatch.parity.rule import Compared
from compilewatch.parity.runs import leaves
from compilewatch.parity.target import NotCompared
from compilewatch.parity.told import Totals
from compilewatch.recorder import RECORDER
from compilewatch.watching import is_watched, region_of

EVERY = 100
"""One call in so many is looked at: reading an answer once more may take a while."""


def finite_looked_at(watched: Any, asked: bool) -> Any:
    """What `watch` made, of which some answers are looked at. `asked`: for this callable, so that a reason why not is told."""
    why = cannot_be_drawn(watched)
    if why or not is_watched(watched):
        if asked:
            say(f"watch(finite=True) looks at no answer of {named(watched)!r:.80}: {why or 'it is not watched'}")
        return watched
    return drawn(watched, Finite(watched, asked), region_of(watched))


class Finite:
    """The drawn calls of one callable."""

    def __init__(self, fn: Any, asked: bool) -> None:
        self.every = EVERY
        self._asked = asked
        self._totals = Totals("finite", region_of(fn))
        self._turn = threading.Lock()

    def take(self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = call()
        if self.every >= NEVER or hotpath.tracing() or RECORDER.lines is None or not self._turn.acquire(blocking=False):
            return answer
        try:
            self._look(answer)
        except NotCompared as reason:
            self._refuse(str(reason))
        except Exception as error:  # noqa: BLE001 - the job's call is over and succeeded
            self._refuse(f"looking at the answer raised {named(type(error).__name__)}")
        finally:
            self._turn.release()
        return answer

    def _refuse(self, why: str) -> None:
        self.every, self._totals.refused = NEVER, why
        if self._asked or self._totals.samples:
            self._totals.tell()

    def _look(self, answer: Any) -> None:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return
        with torch.no_grad():
            outputs = {place: one for place, one in leaves(torch, answer)[0].items() if one.is_floating_point() or one.is_complex()}
            if not outputs:
                raise NotCompared("it returns no tensor of floating-point numbers")
            for one in outputs.values():
                if one.device.type != "cpu":
                    raise NotCompared(f"its output is on {one.device.type}: looking at it would wait for that")
            found = [Compared(place, 0.0, 0.0, 0.0, _odd(torch, one), 0, False) for place, one in outputs.items()]
        worst = max(found, key=lambda one: one.nonfinite)
        total = sum(one.nonfinite for one in found)
        self._totals.outputs = len(outputs)
        self._totals.dtype = str(next(iter(outputs.values())).dtype).removeprefix("torch.")
        self._totals.add(worst._replace(nonfinite=total, error=float(bool(total))))
        self._totals.tell()


def _odd(torch: Any, one: Any) -> int:
    """How many values are NaN or infinite. A sum of what is finite is so too, nearly always, and takes a fraction of the time."""
    one = one.detach()
    if bool(torch.isfinite(one.sum())):
        return 0
    return int((~torch.isfinite(one)).sum())
