"""Call timeout: runs a function that has no timeout of its own, and abandons it at the deadline."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from dashboard.vocabulary.numbers import significant

T = TypeVar("T")


def call_with_timeout(work: Callable[[], T], *, seconds: float) -> T:
    """Returns or raises the outcome of `work`. Raises TimeoutError after `seconds`.

    Nothing can stop the thread then; it continues until `work` returns.
    """
    found: queue.SimpleQueue[tuple[list[T], BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            found.put(([work()], None))
        except BaseException as error:  # noqa: BLE001  # raised again by the caller
            found.put(([], error))

    threading.Thread(target=run, name="compilewatch-bounded", daemon=True).start()
    try:
        done, error = found.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not done within {significant(seconds)} s") from None
    if error is not None:
        raise error
    return done[0]
