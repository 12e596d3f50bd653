"""Protocols of a series buffer, its GPU probe and call sampling, for modules on both sides."""

from __future__ import annotations

from typing import Any, Protocol


class Buffer(Protocol):
    """Counts the calls of one region."""

    has_nested_calls: bool

    def route_calls(self) -> None:
        """Points callers at the lists of this buffer."""

    def count_untimed(self, calls: int) -> None:
        """Counts `calls` that were not timed and did not compile."""

    def record_nested_call(self) -> None:
        """Records that a call of this buffer contains another watched call."""

    def pop_timed_totals(self) -> tuple[int, float]:
        """Returns and resets the number of timed steady calls and the sum of their seconds."""

    def choose_waiting_list(self, start: float) -> list[float]:
        """The list for a call that began at `start` and compiled or waited for a compilation."""


class UntimedSampling(Protocol):
    """The sampling state of a region, as the frame of an untimed call refers to it."""

    is_nested: bool
    corrections: list[int]

    def stop(self) -> None:
        """Has every call timed from now on."""

    @property
    def buffer(self) -> Buffer | None:
        """The buffer of the last timed call."""


class Probe(Protocol):
    """Times a sample of the calls of a buffer on the GPU. `begin` returns None for a call
    outside of the sample. No method raises."""

    def begin(self) -> Any | None: ...

    def end(self, pair: Any) -> None: ...

    def drop(self, pair: Any) -> None: ...
