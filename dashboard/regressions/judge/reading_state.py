"""What a series tells the policy: a reading at every minute, and its bound at the fixed looks."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """What a series says at the end of a minute; nothing in it is true while there is nothing to
    compare."""

    regressed: bool = False
    leaning: bool = False
    """Regressed at the weaker level that WATCH asks for."""
    recovered: bool = False
    """The most recent data is back at the baseline's level, whatever the whole says."""
    relapsed: bool = False
    fresh: bool = True
    """The newest minutes show it too; what a window only remembers adds nothing to a hold time."""
    narrow: bool = False
    """One instance shows nearly all of what leans: it may be its machine."""


CALM = Reading()


class BoundedSeries(Protocol):
    """What HEALTHY asks of a series."""

    matched_minutes: int

    def bound(self) -> float | None:
        """The one-sided upper bound on the log scale, positive is worse; None where the series
        knows none."""

    def expected(self) -> bool:
        """Whether HEALTHY has to wait for its answer: not for what is not reported."""

    def tolerable(self) -> bool:
        """Whether the series can say that nothing got worse than is tolerated."""
