"""Server exit hooks: servers whose workers end without exit functions call the agent through their
own last callback.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

OnEnd = Callable[[dict[str, Any]], None]
"""Callback for the end of the process; its argument describes the ending."""
_REPLACEMENTS: list[Callable[..., Any]] = []
"""The replacements of Ray Serve's function."""


def listen(end: OnEnd) -> None:
    """Registers `end` in a worker of Celery's pool and in a replica of Ray Serve."""
    _listen_to_pool(end)
    _listen_to_replica(end)


def _listen_to_pool(end: OnEnd) -> None:
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        ended = functools.partial(_on_pool_process_end, end)
        signals.worker_process_shutdown.connect(ended, weak=False, dispatch_uid="compilewatch")


def _on_pool_process_end(end: OnEnd, exitcode: object = None, **_: object) -> None:
    end({"code": exitcode} if isinstance(exitcode, int) else {})


def _listen_to_replica(end: OnEnd) -> None:
    """Wraps the destructor call, after which Ray kills the replica."""
    holder: Any = getattr(
        sys.modules.get("ray.serve._private.replica"), "UserCallableWrapper", None
    )
    original = getattr(holder, "call_destructor", None)
    if original is None or original in _REPLACEMENTS:
        return

    @functools.wraps(original)
    async def call_destructor(*args: Any, **kwargs: Any) -> Any:
        try:
            return await original(*args, **kwargs)
        finally:
            end({})

    _REPLACEMENTS.append(call_destructor)
    holder.call_destructor = call_destructor
