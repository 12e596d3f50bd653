"""Readings: the interface between series and verdict policy: a reading at every minute, and a bound
at the fixed looks."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """State of a series at the end of a minute. Every flag of a change is False while there is
    nothing to compare."""

    regressed: bool = False
    leaning: bool = False
    """Regressed at the lower confidence that WATCH requires."""
    recovered: bool = False
    """The most recent data is back at the baseline's level, regardless of the whole."""
    relapsed: bool = False
    fresh: bool = True
    """The newest minutes show it, too. Events that only the window remembers do not add to a hold
    time."""
    narrow: bool = False
    """One instance accounts for nearly all of the change. The cause may be its machine."""
    size: float = 1.0
    """The change in units of the smallest effect. A larger change has a shorter hold time."""


CALM = Reading()


class BoundedSeries(Protocol):
    """The state that HEALTHY requires of a series."""

    matched_minutes: int

    def bound(self) -> float | None:
        """The one-sided upper bound on the log scale, positive is worse; None if the series has no
        bound."""

    def expected(self) -> bool:
        """True if HEALTHY must wait for the series; False for a metric that is not reported."""

    def contradicts(self) -> bool:
        """True if the best estimate speaks against an earlier HEALTHY."""

    def tolerable(self) -> bool:
        """True if the series rules out any change above the tolerated one."""
