"""The running state of how fast processes grow: a slope of each instance by itself, over blocks of minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from .estimate import Unit, pooled
from .minutes import Arm, Stratum
from .process_compared import Arms, Compared, Numbers, Strata, Units, grouped, highest
from .process_metrics import Growth
from .settings import Settings


class Blocks:
    """The levels of one instance in blocks of some minutes: the medians of the closed ones, and the one being filled."""

    __slots__ = ("levels", "medians")

    def __init__(self, most: int) -> None:
        self.medians: deque[tuple[int, float]] = deque(maxlen=most)
        self.levels: list[float] = []

    def close(self, index: int, least: int) -> None:
        """Ends the block; one with too few minutes says nothing."""
        if len(self.levels) >= least:
            self.medians.append((index, median(self.levels)))
        self.levels.clear()


class GrowthSeries(Compared):
    """How fast the level of every instance grows per hour, once it is in its stride."""

    def __init__(self, metric: Growth, settings: Settings) -> None:
        super().__init__(metric, settings)
        self.metric = metric
        self.blocks: dict[Arm, dict[Stratum, dict[Unit, Blocks]]] = {"baseline": {}, "candidate": {}}
        self._open: int | None = None
        self._least = metric.least_minutes // metric.block_minutes

    def add(self, minute: int, strata: Strata) -> int:
        """Takes a minute; a block that ends is one observation of as many minutes."""
        index, ended = minute // self.metric.block_minutes, 0
        if self._open is not None and index != self._open:
            ended = self._close(self._open)
        self._open = index
        for stratum, arms in strata.items():
            grown = Arms(self._grown(arms.baseline), self._grown(arms.candidate))
            base, cand = highest(grown.baseline, self.metric.value), highest(grown.candidate, self.metric.value)
            self.note(grown, base, cand)
            self._fill("candidate", stratum, cand)
            # A slope is compared with slopes of the same hours: before, the baseline's days are of no use.
            if stratum in self.blocks["candidate"]:
                self._fill("baseline", stratum, base)
        return ended

    def _grown(self, units: Units) -> Units:
        least = self.metric.from_minute
        found = {unit: [row for row in rows if row.age >= least] for unit, rows in units.items()}
        return {unit: rows for unit, rows in found.items() if rows}

    def _fill(self, arm: Arm, stratum: Stratum, levels: Numbers) -> None:
        if not levels:
            return
        units = self.blocks[arm].setdefault(stratum, {})
        for unit, level in levels.items():
            blocks = units.get(unit)
            if blocks is None:
                blocks = units[unit] = Blocks(self.metric.most_blocks)
            blocks.levels.append(level)

    def _close(self, index: int) -> int:
        least = self.metric.block_minutes // 2 + 1
        filled = [
            stratum
            for stratum, units in self.blocks["candidate"].items()
            if any(blocks.levels for blocks in units.values())
            and any(blocks.levels for blocks in self.blocks["baseline"].get(stratum, {}).values())
        ]
        for strata in self.blocks.values():
            for units in strata.values():
                for blocks in units.values():
                    blocks.close(index, least)
        if not filled:
            return 0
        self.changed()
        self.matched_minutes += self.metric.block_minutes
        return self.metric.block_minutes if self.groups else 0

    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The slope of every instance with enough blocks."""
        return self._slopes(arm, stratum, self.metric.most_blocks)

    def _slopes(self, arm: Arm, stratum: Stratum, last: int) -> Numbers:
        hours = self.metric.block_minutes / 60.0
        units = self.blocks[arm].get(stratum, {})
        return {unit: slope(list(blocks.medians)[-last:]) / hours for unit, blocks in units.items() if len(blocks.medians) >= self._least}

    def strata(self) -> list[Stratum]:
        """Where the candidate has instances that are old enough."""
        return list(self.blocks["candidate"])

    def minutes(self) -> float:
        """The mean minutes of the candidate's instances that count."""
        counts = [
            len(blocks.medians)
            for units in self.blocks["candidate"].values()
            for blocks in units.values()
            if len(blocks.medians) >= self._least
        ]
        return self.metric.block_minutes * sum(counts) / len(counts)

    def recent_change(self) -> float | None:
        """The change of the slopes over the newest blocks alone; None while those are all there are."""
        if self.minutes() < 2 * self.metric.least_minutes:
            return None
        newest = grouped(
            [(name, self._slopes("baseline", name, self._least), self._slopes("candidate", name, self._least)) for name in self.strata()]
        )
        return pooled(newest) if newest else None


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The median of the slopes between any two points: bursts and single steps hardly move it."""
    return median([(b - a) / (j - i) for n, (i, a) in enumerate(points) for j, b in points[n + 1 :]])
