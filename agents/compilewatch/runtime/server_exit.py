"""Servers whose workers end without running exit functions: what they call last is listened to, by trying."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

End = Callable[[dict[str, Any]], None]
"""What is to be done at the end of the process, given how it ends."""
_LISTENING: list[Callable[..., Any]] = []
"""What replaces a function of Ray Serve's."""


def listen(end: End) -> None:
    """Has `end` called in a worker of Celery's pool and in a replica of Ray Serve."""
    _listen_to_pool(end)
    _listen_to_replica(end)


def _listen_to_pool(end: End) -> None:
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        ended = functools.partial(_pool_process_ends, end)
        signals.worker_process_shutdown.connect(ended, weak=False, dispatch_uid="compilewatch")


def _pool_process_ends(end: End, exitcode: object = None, **_: object) -> None:
    end({"code": exitcode} if isinstance(exitcode, int) else {})


def _listen_to_replica(end: End) -> None:
    """Ray kills a replica once its requests are answered and the destructor of its application has run."""
    holder: Any = getattr(
        sys.modules.get("ray.serve._private.replica"), "UserCallableWrapper", None
    )
    original = getattr(holder, "call_destructor", None)
    if original is None or original in _LISTENING:
        return

    @functools.wraps(original)
    async def call_destructor(*args: Any, **kwargs: Any) -> Any:
        try:
            return await original(*args, **kwargs)
        finally:
            end({})

    _LISTENING.append(call_destructor)
    holder.call_destructor = call_destructor
