"""Random call sampling: hands some calls to a check, at the cost of a counted call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

from compilewatch.instrument.object_proxy import WATCHED_ATTRIBUTE, create_proxy
from compilewatch.instrument.wrap import copy_metadata, is_compiled_module
from compilewatch.recording.call_sampling import draw_uniform

NEVER = 1 << 62
"""Sampling interval of a check that has ended."""


class SampledCall(Protocol):
    """A check of sampled calls."""

    interval: int
    """The sampling interval in calls; `NEVER` after the check has ended."""

    def handle_call(
        self, call: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Makes the call (its arguments are `args` and `kwargs`) and returns its answer.

        Raises only what the call raises."""
        ...


def sampling_obstacle(target: Any) -> str:
    """The reason why calls of the target cannot be sampled; empty if they can."""
    suspended = (
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
        inspect.isgeneratorfunction,
    )
    if not callable(target):
        return "it is not callable"
    if isinstance(target, staticmethod | classmethod | type):
        return "it is a static method, a class method or a class"
    return (
        "it is a coroutine or generator function" if any(kind(target) for kind in suspended) else ""
    )


def sample_calls(watched: Any, turn: SampledCall, region: str) -> Any:
    """Wraps the callable for the check; raises TypeError if no proxy is possible."""
    if WATCHED_ATTRIBUTE in vars(type(watched)):
        call = type(watched).__call__
        traced = _call_original if is_compiled_module(watched) else _traced(call)
        return create_proxy(
            watched, copy_metadata(_layer(call, turn, 1), call, region, traced=traced)
        )
    return copy_metadata(_layer(watched, turn, 0), watched, region, traced=_traced(watched))


def _traced(call: Any) -> Any:
    """The function that an outer compilation traces instead."""
    return getattr(call, "_torchdynamo_inline", call)


def _call_original(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._modules["_orig_mod"](*args, **kwargs)


def _layer(fn: Callable[..., Any], turn: SampledCall, skip: int) -> Callable[..., Any]:
    skip_tokens = repeat(None, _pause(turn))

    def layer(*args: Any, **kwargs: Any) -> Any:
        nonlocal skip_tokens
        for _ in skip_tokens:  # runs at most once: the fastest way to take one token
            return fn(*args, **kwargs)
        skip_tokens = repeat(None, _pause(turn))
        return turn.handle_call(lambda: fn(*args, **kwargs), args[skip:], kwargs)

    return layer


def _pause(turn: SampledCall) -> int:
    """Calls until the next sample; random, so that sampling does not synchronise with the job."""
    return (
        turn.interval if turn.interval >= NEVER else int(draw_uniform() * (2 * turn.interval - 1))
    )
