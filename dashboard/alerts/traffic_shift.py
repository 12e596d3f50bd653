"""Whether calls moved from a version back to one before it, from calls by version and minute;
pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

RECENT_MINUTES = 5
"""Minutes that are looked at: one report that is late moves nothing."""

MAX_LEFT_RATIO = 0.1
"""Of its share at the time of the alert a version keeps at most so much when it was rolled back."""

MIN_RETURNED_RATIO = 0.5
"""Of that share it carries at least so much when it is back."""

MIN_TRAFFIC_RATIO = 0.25
"""With less than this part of the earlier calls nothing is said about where they go: reports may be
missing."""

CallsByMinute = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class TrafficShares:
    """A version's part of all calls at the time of its alert and in the last minutes, and who has
    most of them now."""

    then: float
    now: float
    most: int | None

    @property
    def left(self) -> bool:
        """Its calls are gone."""
        return self.now <= MAX_LEFT_RATIO * self.then

    @property
    def back(self) -> bool:
        """They are there."""
        return self.now >= MIN_RETURNED_RATIO * self.then


def compute_traffic_shares(
    calls: CallsByMinute, *, version: int, then: Collection[int], now: Collection[int]
) -> TrafficShares | None:
    """None while it cannot be told: no call of this version then, or far fewer calls of all now."""
    before, after = _sums(calls, then), _sums(calls, now)
    total_before, total_after = sum(before.values()), sum(after.values())
    if (
        not before.get(version)
        or not total_after
        or total_after / len(now) < MIN_TRAFFIC_RATIO * total_before / len(then)
    ):
        return None
    if any(not sum(minutes.get(minute, 0) for minutes in calls.values()) for minute in now):
        return (
            None  # a minute without any call: the reports of the others may be on their way as well
        )
    others = {one: count for one, count in after.items() if one != version and count}
    most = max(others, key=lambda one: (others[one], one)) if others else None
    return TrafficShares(before[version] / total_before, after.get(version, 0) / total_after, most)


def _sums(calls: CallsByMinute, wanted: Collection[int]) -> dict[int, int]:
    return {
        version: sum(minutes.get(minute, 0) for minute in wanted)
        for version, minutes in calls.items()
    }
