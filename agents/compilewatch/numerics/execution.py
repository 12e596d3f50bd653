"""Execution observer: counts guard lookups that found compiled code while a golden batch runs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.torch_internals import GUARD_HOOK
from compilewatch.sources.dynamo.guard_lookups import Hook, make_guard_hook


class Execution:
    """Guard lookups of one thread; `known` is False if torch has no supported guard hook."""

    def __init__(self) -> None:
        self.known = False
        self.hits = 0
        """Lookups that found code with a graph; set at the end of the observation."""
        self._graphs = count_captured_graphs()

    @property
    def compiled(self) -> bool:
        """True if compiled code was found, or was compiled and run."""
        return self.hits > 0 or count_captured_graphs() > self._graphs


def count_captured_graphs() -> int:
    """Number of graphs that torch has captured in this process."""
    counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters["stats"]["unique_graphs"]) if counters else 0


@contextmanager
def observe_execution() -> Iterator[Execution]:
    """Counts the guard lookups of this thread, like those of watched calls.

    torch has one slot for a guard hook. While the duty cycle of the agent's own hook pauses, this
    context occupies the slot. The previous hook is still called, decides the answer, and is
    restored at the end."""
    found, call = Execution(), RECORDER.get_thread_state()
    slot = None if RECORDER.lookup_step or GUARD_HOOK.problem() else GUARD_HOOK.find()
    hook: Hook | None = None
    previous = _set_hook(slot, None)
    if previous is not _FAILED:
        hook = make_guard_hook(RECORDER, previous, itertools.count())
        _set_hook(slot, hook)
        RECORDER.count_lookups(True)
    found.known, before = bool(RECORDER.lookup_step), call.hits
    try:
        yield found
    finally:
        found.hits = call.hits - before
        if hook is not None:
            present = _set_hook(slot, previous)
            if present is hook:
                RECORDER.count_lookups(False)
            else:
                _set_hook(slot, present)  # another hook took the slot meanwhile and keeps it


_FAILED: Any = object()


def _set_hook(slot: Any, hook: Hook | None) -> Any:
    """Sets the hook and returns the previous one; `_FAILED` if the slot is not supported."""
    try:
        return _FAILED if slot is None else slot(hook)
    except Exception:  # noqa: BLE001 - the caller then reads the cache entries of the code
        return _FAILED
