"""Fault barrier: counts errors of the agent and never raises them in the job."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class FaultBarrier:
    """Suppresses any Exception in its block and passes it to `on_error`.

    KeyboardInterrupt and SystemExit propagate.
    """

    __slots__ = ("_on_error",)

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._on_error(error)
            return True
        return False
