"""Kill switch: runs callables from `torch.compile` frozen or eager while a command of the dashboard
is in force.

Each call decides at its start, for itself and its own thread. A call in progress ends as it
began, so a call with `fullgraph=True` never sees the change back. Torch's process-wide stance
stays unchanged: a change of the stance during such a call raises in the call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from compilewatch.errors import AgentError
from compilewatch.recording.recorder import RECORDER

FREEZE, EAGER = "freeze", "eager"
_BYPASS_ATTRIBUTE = "_compilewatch_bypass"


class HeldCommand:
    """A command verb, in force between two times of the monotonic clock. It ends even if no
    thread of the agent runs."""

    __slots__ = ("begin", "end", "frozen_callables", "verb")

    def __init__(self, verb: str, begin: float, end: float) -> None:
        self.verb = verb
        self.begin = begin
        self.end = end
        self.frozen_callables: dict[int, tuple[Any, Callable[..., Any]]] = {}
        """Callables that run a module without compiling, by the module's id. Dropped with the
        command."""

    def is_in_force(self) -> bool:
        """True if the command applies to a call that begins now."""
        return self.begin <= time.monotonic() < self.end


class KillSwitch:
    """The kill switch of the process. Wrappers read it at each call; the agent's thread sets it."""

    __slots__ = ("command", "is_allowed", "route_count")

    def __init__(self) -> None:
        self.command: HeldCommand | None = None
        self.is_allowed = True
        """True if the settings allow commands, and until the settings are read."""
        self.route_count = 0
        """Number of watched compiled callables that a command can reach."""

    def eager_cause(self) -> tuple[str, bool]:
        """Why calls run eager because of the command, and whether all do. Empty without a
        command in force."""
        command = self.command
        return (
            ("stance", command.verb == EAGER)
            if command is not None and command.is_in_force()
            else ("", False)
        )


KILL_SWITCH = KillSwitch()


def route_function(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function from `torch.compile` so that it follows the kill switch."""
    if not KILL_SWITCH.is_allowed:
        return compiled
    original = find_original(compiled)
    KILL_SWITCH.route_count += 1
    switch = KILL_SWITCH

    def route(*args: Any, **kwargs: Any) -> Any:
        command = switch.command
        if command is None or not command.is_in_force():
            return compiled(*args, **kwargs)
        if command.verb == EAGER:
            return original(*args, **kwargs)
        return freeze(command, original, compiled)(*args, **kwargs)

    setattr(route, _BYPASS_ATTRIBUTE, compiled)
    return route


def route_module(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the `__call__` of a module from `torch.compile`. Its first argument is the module."""
    if not KILL_SWITCH.is_allowed:
        return compiled
    KILL_SWITCH.route_count += 1
    switch = KILL_SWITCH

    def route(self: Any, *args: Any, **kwargs: Any) -> Any:
        command = switch.command
        if command is None or not command.is_in_force():
            return compiled(self, *args, **kwargs)
        original = self._modules["_orig_mod"]
        if command.verb == EAGER:
            return original(*args, **kwargs)
        return freeze(command, original, original)(*args, **kwargs)

    setattr(route, _BYPASS_ATTRIBUTE, compiled)
    return route


def bypass(called: Callable[..., Any]) -> Callable[..., Any]:
    """The callable without the kill switch, for calls while no command is in force or due."""
    existing: Callable[..., Any] = getattr(called, _BYPASS_ATTRIBUTE, called)
    return existing


def find_original(compiled: Any) -> Any:
    """The function that was passed to `torch.compile`."""
    for _ in range(10):
        inner = getattr(compiled, "_torchdynamo_orig_callable", None)
        if inner is None:
            break
        compiled = inner
    return compiled


def freeze(
    command: HeldCommand, original: Any, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns a callable that uses existing compiled code and runs everything else eager.

    Uses torch's own run-only mode, which applies to one call on one thread."""
    existing = command.frozen_callables.get(id(original))
    if existing is not None:
        return existing[1]
    try:
        frozen_callable = sys.modules["torch._dynamo"].run(original)
    except Exception as error:  # noqa: BLE001 - runs inside a call of the job
        RECORDER.record_internal_error(
            AgentError(f"run-only mode: {type(error).__name__}: {error}")
        )
        frozen_callable = otherwise
    command.frozen_callables[id(original)] = (original, frozen_callable)
    return frozen_callable  # type: ignore[no-any-return]
