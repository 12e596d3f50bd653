"""Protocols of a series buffer and of the sampling of its calls, for the modules that both of them import."""

from __future__ import annotations

from typing import Protocol


class Buffer(Protocol):
    """What counts the calls of one region."""

    holds: bool

    def aim(self) -> None:
        """Points callers at its lists."""

    def count_untimed(self, calls: int) -> None:
        """Counts calls that ran without compiling and were not timed."""

    def holds_another(self) -> None:
        """A watched call is made inside one of its calls."""

    def timed_since(self) -> tuple[int, float]:
        """How many steady calls were timed since the last time, and their seconds together."""

    def waited(self, start: float) -> list[float]:
        """Where a call goes that began then, and compiled or waited for a compilation."""


class UntimedSampling(Protocol):
    """What decides which calls of a region are timed, as a frame of an untimed call holds it."""

    nested: bool
    undone: list[int]

    def stop(self) -> None:
        """Every call is timed from now on."""

    @property
    def line(self) -> Buffer | None:
        """The buffer that was timed last."""
