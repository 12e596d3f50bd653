"""A candidate against its baseline, minute after minute: the state that grows, and what it says now."""

from __future__ import annotations

from collections.abc import Iterable

from .minutes import Arm, InstanceMinute
from .policy import Judged, Policy
from .region import Region
from .settings import PRODUCTION, Settings


class Life:
    """When one arm was seen, warm-up apart from steady calls."""

    __slots__ = ("first", "first_steady", "last", "last_steady")

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self.first_steady: int | None = None
        self.last_steady: int | None = None

    def seen(self, minute: int, steady: bool) -> None:
        """Notes calls in a minute."""
        if self.first is None:
            self.first = minute
        self.last = minute
        if steady:
            if self.first_steady is None:
                self.first_steady = minute
            self.last_steady = minute


class Comparison:
    """Everything that is known about a deployment beside its baseline; minutes must come in order.

    A minute that arrives late means: start a new comparison and replay. The result depends on the rows alone.
    """

    def __init__(self, deployed_minute: int, settings: Settings = PRODUCTION) -> None:
        self.settings = settings
        self.deployed_minute = deployed_minute
        self.minute: int | None = None
        self.regions: dict[str, Region] = {}
        self.lives: dict[Arm, Life] = {"baseline": Life(), "candidate": Life()}
        self.policy = Policy(deployed_minute, settings)
        self.side_by_side_minutes = 0

    def add_minute(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Takes all rows of one closed minute, in any order."""
        if self.minute is not None and minute <= self.minute:
            raise ValueError(f"minute {minute} comes after minute {self.minute}: replay the comparison to add late data")
        self.minute = minute
        if minute < self.deployed_minute:
            return
        regions = self._collect(minute, rows)
        if not regions:
            return
        runs = self.lives["baseline"].last_steady == minute
        self.side_by_side_minutes += runs and self.lives["candidate"].last_steady == minute
        comparisons = self.comparisons
        for region in regions:
            region.close(minute, runs, comparisons)
        if self.lives["candidate"].last_steady == minute:
            self.policy.step(minute, self.judged(), self._comparable_for_policy())

    def _collect(self, minute: int, rows: Iterable[InstanceMinute]) -> list[Region]:
        warm_up = self.settings.warm_up_minutes
        regions = self.regions
        touched: dict[str, Region] = {}
        arms: set[tuple[Arm, bool]] = set()
        for row in rows:
            if row.calls <= 0 or not row.outermost:
                continue
            steady = minute - row.first_minute >= warm_up
            arms.add((row.arm, steady))
            if not steady:
                continue
            name = row.region
            region = touched.get(name)
            if region is None:
                region = regions.get(name) or Region(name, self.settings)
                touched[name] = regions[name] = region
            region.collect(row)
        for arm, steady in arms:
            self.lives[arm].seen(minute, steady)
        return list(touched.values())

    @property
    def comparisons(self) -> int:
        """How many comparisons share the error budget: judged metrics times outermost regions."""
        return self.settings.judged_metrics * max(1, len(self.regions))

    def judged(self) -> list[Judged]:
        """The tracks of all regions that count for the verdict."""
        if len(self.regions) == 1:
            return [item for region in self.regions.values() for item in region.judged(minor=False)]
        calls = {name: region.calls()[0] for name, region in self.regions.items()}
        total = sum(calls.values())
        least = self.settings.minor_region_share
        return [item for name, region in self.regions.items() for item in region.judged(minor=calls[name] < least * total)]

    def comparable(self) -> float | None:
        """The share of the candidate's calls that had a baseline in their cell, while the baseline ran; None without a call."""
        total = alone = after = 0
        for region in self.regions.values():
            counts = region.calls()
            total, alone, after = total + counts[0], alone + counts[1], after + counts[2]
        return 1.0 - alone / (total - after) if total > after else None

    def _comparable_for_policy(self) -> float | None:
        if self.side_by_side_minutes < self.settings.watch_minutes:
            return None
        # With nothing comparable at all there is nothing to watch either: that is not enough data.
        return self.comparable() or None
