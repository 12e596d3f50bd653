"""Calls something that knows no time limit of its own, and goes on without it when its time is
over."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from dashboard.common.numbers import significant

T = TypeVar("T")


def call_with_timeout(work: Callable[[], T], *, seconds: float) -> T:
    """What it returns or raises; TimeoutError when that takes too long: nothing can stop it then,
    and it is left to end by itself."""
    found: queue.SimpleQueue[tuple[list[T], BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            found.put(([work()], None))
        except BaseException as error:  # noqa: BLE001  # raised again by whoever waits
            found.put(([], error))

    threading.Thread(target=run, name="compilewatch-bounded", daemon=True).start()
    try:
        done, error = found.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not done within {significant(seconds)} s") from None
    if error is not None:
        raise error
    return done[0]
