"""The switch on the path of a call: what came out of `torch.compile` runs frozen or eager while the dashboard's command is in force.

Decided anew at the beginning of each call and for that call alone, on its own thread: a call under way ends as it began, so that one of
`fullgraph=True` never sees the way back. Torch's process-wide stance is left alone: flipped while such a call runs, it raises in it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from compilewatch.errors import AgentError
from compilewatch.recording.recorder import RECORDER

FREEZE, EAGER = "freeze", "eager"
_STRAIGHT = "_compilewatch_straight"


class Held:
    """A verb in force from a moment until another one, both of the monotonic clock: it ends though no thread of ours runs any more."""

    __slots__ = ("begin", "end", "frozen", "verb")

    def __init__(self, verb: str, begin: float, end: float) -> None:
        self.verb = verb
        self.begin = begin
        self.end = end
        self.frozen: dict[int, tuple[Any, Callable[..., Any]]] = {}
        """What runs a module without compiling, by the module's id; kept no longer than the verb."""

    def in_force(self) -> bool:
        """Whether a call that begins now is concerned."""
        return self.begin <= time.monotonic() < self.end


class Switch:
    """One per process; wrappers ask it at each call, the agent's thread sets it."""

    __slots__ = ("held", "possible", "routes")

    def __init__(self) -> None:
        self.held: Held | None = None
        self.possible = True
        """Whether the settings allow it; until they are read they may."""
        self.routes = 0
        """How many compiled callables are watched that a command can reach."""

    def cause(self) -> tuple[str, bool]:
        """Why calls run eager because of it, and whether all do; empty while nothing is in force."""
        held = self.held
        return (
            ("stance", held.verb == EAGER) if held is not None and held.in_force() else ("", False)
        )


SWITCH = Switch()


def routed_function(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """What a wrapper calls for a function that `torch.compile` made."""
    if not SWITCH.possible:
        return compiled
    original = innermost(compiled)
    SWITCH.routes += 1
    switch = SWITCH

    def route(*args: Any, **kwargs: Any) -> Any:
        held = switch.held
        if held is None or not held.in_force():
            return compiled(*args, **kwargs)
        if held.verb == EAGER:
            return original(*args, **kwargs)
        return frozen(held, original, compiled)(*args, **kwargs)

    setattr(route, _STRAIGHT, compiled)
    return route


def routed_module(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The same for the `__call__` of a module that `torch.compile` made: its first argument is the module."""
    if not SWITCH.possible:
        return compiled
    SWITCH.routes += 1
    switch = SWITCH

    def route(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = switch.held
        if held is None or not held.in_force():
            return compiled(self, *args, **kwargs)
        original = self._modules["_orig_mod"]
        if held.verb == EAGER:
            return original(*args, **kwargs)
        return frozen(held, original, original)(*args, **kwargs)

    setattr(route, _STRAIGHT, compiled)
    return route


def straight(called: Callable[..., Any]) -> Callable[..., Any]:
    """What a wrapper calls while no command is in force nor due: without the way round by the switch, if there is one."""
    found: Callable[..., Any] = getattr(called, _STRAIGHT, called)
    return found


def innermost(compiled: Any) -> Any:
    """The function that was handed to `torch.compile`."""
    for _ in range(10):
        inner = getattr(compiled, "_torchdynamo_orig_callable", None)
        if inner is None:
            break
        compiled = inner
    return compiled


def frozen(held: Held, original: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What runs it with what was compiled before, and the rest eager: torch's own run-only mode, which lies on one thread for one call."""
    found = held.frozen.get(id(original))
    if found is not None:
        return found[1]
    try:
        made = sys.modules["torch._dynamo"].run(original)
    except Exception as error:  # noqa: BLE001 - this runs inside a call of the job
        RECORDER.internal_error(AgentError(f"run-only mode: {type(error).__name__}: {error}"))
        made = otherwise
    held.frozen[id(original)] = (original, made)
    return made  # type: ignore[no-any-return]
