"""What a series tells the policy at one minute."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """A series without an answer is not `known`; bounds are on the log scale, positive is worse."""

    known: bool = False
    regressed: bool = False
    leaning: bool = False
    """Regressed at the weaker level that WATCH asks for."""
    recovered: bool = False
    """The most recent data is back at the baseline's level, whatever the whole says."""
    relapsed: bool = False
    bound: float | None = None
    """The one-sided upper bound that HEALTHY asks for."""
    tolerable: bool = False
