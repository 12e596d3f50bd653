"""What ran in a call: guard lookups that found compiled code with a graph, counted through torch's own hook while a golden batch runs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.torch_internals import GUARD_HOOK
from compilewatch.sources.dynamo.guard_lookups import Hook, guard_hook


class Execution:
    """Lookups of one thread. `known` is False where this torch has no hook, or another one than we know."""

    def __init__(self) -> None:
        self.known = False
        self.hits = 0
        """Lookups that found code with a graph; there once the call is over."""
        self._graphs = graphs_captured()

    @property
    def compiled(self) -> bool:
        """Whether compiled code was found, or made and run."""
        return self.hits > 0 or graphs_captured() > self._graphs


def graphs_captured() -> int:
    """How many graphs torch has captured in this process."""
    counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters["stats"]["unique_graphs"]) if counters else 0


@contextmanager
def observe_execution() -> Iterator[Execution]:
    """Counts the lookups of this thread until it ends, as those of watched calls are counted: where that has a pause, the one slot that
    torch has for a hook is taken for so long. Who held it before hears every answer, decides it, and has it back."""
    found, call = Execution(), RECORDER.call()
    slot = None if RECORDER.token or GUARD_HOOK.problem() else GUARD_HOOK.find()
    hook: Hook | None = None
    previous = _put(slot, None)
    if previous is not _FAILED:
        hook = guard_hook(RECORDER, previous, itertools.count())
        _put(slot, hook)
        RECORDER.count_lookups(True)
    found.known, before = bool(RECORDER.token), call.hits
    try:
        yield found
    finally:
        found.hits = call.hits - before
        if hook is not None:
            present = _put(slot, previous)
            if present is hook:
                RECORDER.count_lookups(False)
            else:
                _put(slot, present)  # another one took the slot meanwhile: it stays theirs


_FAILED: Any = object()


def _put(slot: Any, hook: Hook | None) -> Any:
    """Who held the slot before; `_FAILED` where torch's slot is another than we know."""
    try:
        return _FAILED if slot is None else slot(hook)
    except Exception:  # noqa: BLE001 - then entries of the code itself say what is compiled
        return _FAILED
