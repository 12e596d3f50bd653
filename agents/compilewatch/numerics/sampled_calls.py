"""Some calls of a callable, drawn by chance, are looked at; each of the others costs what a counted call does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

from compilewatch.instrument.object_proxy import WATCHED, stand_in
from compilewatch.instrument.wrap import dressed, is_compiled_module
from compilewatch.recording.call_sampling import chance

NEVER = 1 << 62


class Turn(Protocol):
    """What looks at the drawn calls."""

    every: int
    """One call in so many; `NEVER` once there is nothing to look at any more."""

    def take(self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call, which `args` and `kwargs` were given for, and answers what it answered; raises nothing else."""
        ...


def cannot_be_drawn(target: Any) -> str:
    """Why calls of it cannot be looked at; empty if they can."""
    suspended = (
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
        inspect.isgeneratorfunction,
    )
    if not callable(target):
        return "it is not callable"
    if isinstance(target, staticmethod | classmethod | type):
        return "it is no function of its own"
    return (
        "its calls are suspended and go on later" if any(kind(target) for kind in suspended) else ""
    )


def drawn(watched: Any, turn: Turn, region: str) -> Any:
    """The same callable, of which some calls are the turn's; raises TypeError for what nothing can stand in for."""
    if WATCHED in vars(type(watched)):
        call = type(watched).__call__
        traced = _call_original if is_compiled_module(watched) else _traced(call)
        return stand_in(watched, dressed(_layer(call, turn, 1), call, region, traced=traced))
    return dressed(_layer(watched, turn, 0), watched, region, traced=_traced(watched))


def _traced(call: Any) -> Any:
    """What an outer compilation traces instead."""
    return getattr(call, "_torchdynamo_inline", call)


def _call_original(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._modules["_orig_mod"](*args, **kwargs)


def _layer(fn: Callable[..., Any], turn: Turn, skip: int) -> Callable[..., Any]:
    tickets = repeat(None, _pause(turn))

    def layer(*args: Any, **kwargs: Any) -> Any:
        nonlocal tickets
        for _ in tickets:  # once at most, which is the quickest way to take one
            return fn(*args, **kwargs)
        tickets = repeat(None, _pause(turn))
        return turn.take(lambda: fn(*args, **kwargs), args[skip:], kwargs)

    return layer


def _pause(turn: Turn) -> int:
    """How many calls pass before the next one is drawn. With chance in it, so that it does not fall into step with the job."""
    return turn.every if turn.every >= NEVER else int(chance() * (2 * turn.every - 1))
