"""Traffic shift: detects from calls per version and minute that traffic returned to an earlier
version; pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

RECENT_MINUTES = 5
"""Number of recent minutes to compare, so that one late report changes nothing."""

MAX_LEFT_RATIO = 0.1
"""A version counts as rolled back if it keeps at most this part of the share it had when its alert
opened."""

MIN_RETURNED_RATIO = 0.5
"""A version counts as back if it carries at least this part of that share."""

MIN_TRAFFIC_RATIO = 0.25
"""Below this part of the earlier calls, the shares are unknown: reports may be missing."""

CallsByMinute = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class TrafficShares:
    """A version's share of all calls when its alert opened and in the last minutes, and the version
    with the most calls now."""

    then: float
    now: float
    most: int | None

    @property
    def left(self) -> bool:
        """True if the version lost its calls."""
        return self.now <= MAX_LEFT_RATIO * self.then

    @property
    def back(self) -> bool:
        """True if the version has calls again."""
        return self.now >= MIN_RETURNED_RATIO * self.then


def compute_traffic_shares(
    calls: CallsByMinute, *, version: int, then: Collection[int], now: Collection[int]
) -> TrafficShares | None:
    """None while the shares are unknown: this version had no calls then, or far fewer calls arrive
    now in total."""
    before, after = _sums(calls, then), _sums(calls, now)
    total_before, total_after = sum(before.values()), sum(after.values())
    if (
        not before.get(version)
        or not total_after
        or total_after / len(now) < MIN_TRAFFIC_RATIO * total_before / len(then)
    ):
        return None
    if any(not sum(minutes.get(minute, 0) for minutes in calls.values()) for minute in now):
        return None  # a minute without calls: reports of the other versions may be late too
    others = {one: count for one, count in after.items() if one != version and count}
    most = max(others, key=lambda one: (others[one], one)) if others else None
    return TrafficShares(before[version] / total_before, after.get(version, 0) / total_after, most)


def _sums(calls: CallsByMinute, wanted: Collection[int]) -> dict[int, int]:
    return {
        version: sum(minutes.get(minute, 0) for minute in wanted)
        for version, minutes in calls.items()
    }
