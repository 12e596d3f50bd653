"""Torch functions whose next call has the sources installed first, where torch was there before the agent and none was called yet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compilewatch.runtime.torch_internals import (
    EVENTS,
    LOAD_ARTIFACTS,
    SAVE_ARTIFACTS,
    SET_STANCE,
    SKIPS,
    TorchName,
)

NAMES = (EVENTS, SKIPS, SET_STANCE, SAVE_ARTIFACTS, LOAD_ARTIFACTS)
"""What sources hear of at the moment when it happens. The first event of a compilation comes before anything else of it."""


class Tripwires:
    """Lies until the agent's thread has installed the sources, which takes tens of milliseconds; a compilation may be faster."""

    def __init__(self, install: Callable[[], None]) -> None:
        """`install` takes the wires away, and never raises."""
        self._install = install
        self._laid: dict[TorchName, tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def lay(self) -> bool:
        """Whether nothing can happen unheard; if not, there are none."""
        if EVENTS.find() is None or EVENTS.problem():
            return False
        for name in NAMES:
            theirs = name.find()
            if callable(theirs):
                wire = self._wire(name, theirs)
                self._laid[name] = (wire, theirs)
                name.put(wire)
        return True

    def remove(self) -> None:
        """Gives the names back. Someone who wrapped a wire still calls it: then it stays in the chain, silent."""
        laid, self._laid = self._laid, {}
        for name, (wire, theirs) in laid.items():
            if name.find() is wire:
                name.put(theirs)

    def _wire(self, name: TorchName, theirs: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(theirs)
        def wire(*args: Any, **kwargs: Any) -> Any:
            first = name.find() is wire
            if self._laid:
                self._install()
            # What is installed now hears this call too, unless it would lead back here.
            called = name.find(theirs) if first else theirs
            return (theirs if called is wire else called)(*args, **kwargs)

        return wire
