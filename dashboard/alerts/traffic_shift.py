"""Whether calls moved from a version back to one before it, from calls by version and minute; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

NOW = 5
"""Minutes that are looked at: one report that is late moves nothing."""

LEFT = 0.1
"""Of its share at the time of the alert a version keeps at most so much when it was rolled back."""

BACK = 0.5
"""Of that share it carries at least so much when it is back."""

OUTAGE = 0.25
"""With less than this part of the earlier calls nothing is said about where they go: reports may be missing."""

Calls = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class Shares:
    """A version's part of all calls at the time of its alert and in the last minutes, and who has most of them now."""

    then: float
    now: float
    most: int | None

    @property
    def left(self) -> bool:
        """Its calls are gone."""
        return self.now <= LEFT * self.then

    @property
    def back(self) -> bool:
        """They are there."""
        return self.now >= BACK * self.then


def shares_of(calls: Calls, *, version: int, then: Collection[int], now: Collection[int]) -> Shares | None:
    """None while it cannot be told: no call of this version then, or far fewer calls of all now."""
    before, after = _sums(calls, then), _sums(calls, now)
    total_before, total_after = sum(before.values()), sum(after.values())
    if not before.get(version) or not total_after or total_after / len(now) < OUTAGE * total_before / len(then):
        return None
    if any(not sum(minutes.get(minute, 0) for minutes in calls.values()) for minute in now):
        return None  # a minute without any call: the reports of the others may be on their way as well
    others = {one: count for one, count in after.items() if one != version and count}
    most = max(others, key=lambda one: (others[one], one)) if others else None
    return Shares(before[version] / total_before, after.get(version, 0) / total_after, most)


def _sums(calls: Calls, wanted: Collection[int]) -> dict[int, int]:
    return {version: sum(minutes.get(minute, 0) for minute in wanted) for version, minutes in calls.items()}
