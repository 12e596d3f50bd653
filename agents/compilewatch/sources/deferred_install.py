"""Deferred install: the next call of certain torch functions installs the sources first.

Used where the job imported torch before `init` and the sources are not installed yet."""

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

TRIGGER_NAMES = (EVENTS, SKIPS, SET_STANCE, SAVE_ARTIFACTS, LOAD_ARTIFACTS)
"""Functions that sources must observe from the first call on. Torch sends the first event of a
compilation before it does any other work of this compilation."""


class DeferredInstall:
    """Wraps the functions until the agent's thread has installed the sources. The installation
    takes tens of milliseconds; a compilation can start earlier."""

    def __init__(self, install: Callable[[], None]) -> None:
        """`install` must call `remove` and must not raise."""
        self._install = install
        self._wrapped: dict[TorchName, tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def wrap_functions(self) -> bool:
        """Wrap the functions. Return False, and wrap none, if torch has no usable event function:
        a compilation could then start unobserved."""
        if EVENTS.find() is None or EVENTS.problem():
            return False
        for name in TRIGGER_NAMES:
            original = name.find()
            if callable(original):
                wrapper = self._wrap(name, original)
                self._wrapped[name] = (wrapper, original)
                name.put(wrapper)
        return True

    def remove(self) -> None:
        """Restore the original functions. Other code may have wrapped a wrapper and still call it:
        this wrapper stays in the chain and only forwards calls."""
        wrapped, self._wrapped = self._wrapped, {}
        for name, (wrapper, original) in wrapped.items():
            if name.find() is wrapper:
                name.put(original)

    def _wrap(self, name: TorchName, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            is_outermost = name.find() is wrapper
            if self._wrapped:
                self._install()
            # The sources installed now must observe this call too, unless this would recurse.
            target = name.find(original) if is_outermost else original
            return (original if target is wrapper else target)(*args, **kwargs)

        return wrapper
