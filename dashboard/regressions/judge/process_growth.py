"""The running state of how fast processes grow: a slope of each instance by itself, over blocks of minutes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

from .estimate import Unit, pooled, t_quantile
from .minutes import Arm, Stratum
from .process_compared import Arms, Compared, Numbers, Strata, Units, grouped, highest
from .process_metrics import Growth
from .sequential import DAY
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
    """How fast the level of every instance grows per hour, once it is in its stride.

    Where the baseline has ended, against how fast its instances grew until then: a leak has to be found after a rollout, too.
    """

    def __init__(self, metric: Growth, settings: Settings) -> None:
        super().__init__(metric, settings)
        self.metric = metric
        self.blocks: dict[Arm, dict[Stratum, dict[Unit, Blocks]]] = {"baseline": {}, "candidate": {}}
        self.after_end: set[Stratum] = set()
        """Strata that were compared with how the baseline grew before it ended."""
        self._past: dict[Stratum, dict[Unit, Blocks]] = {}
        self._remembers = False
        self._seen: dict[Stratum, int] = {}
        self._open: int | None = None
        self._least = metric.least_minutes // metric.block_minutes

    def remember(self, minute: int, strata: Strata) -> None:
        """Takes a minute of the baseline before the deployment."""
        self._remembers = True
        self._turn(minute)
        for stratum, arms in strata.items():
            self._keep(minute, stratum, highest(self._grown(arms.baseline), self.metric.value))

    def add(self, minute: int, strata: Strata) -> int:
        """Takes a minute; a block that ends is one observation of as many minutes."""
        ended = self._turn(minute)
        for stratum, arms in strata.items():
            grown = Arms(self._grown(arms.baseline), self._grown(arms.candidate))
            base, cand = highest(grown.baseline, self.metric.value), highest(grown.candidate, self.metric.value)
            self.note(grown, base, cand)
            self._fill(self.blocks["candidate"], stratum, cand)
            # A slope is compared with slopes of the same hours as long as both run: before, the baseline's days are of no use.
            if stratum in self.blocks["candidate"]:
                self._fill(self.blocks["baseline"], stratum, base)
            self._keep(minute, stratum, base)
        return ended

    def _turn(self, minute: int) -> int:
        """Ends the open block where the minute is of the next one; answers with the minutes that were compared."""
        index, before = minute // self.metric.block_minutes, self._open
        self._open = index
        return self._close(before, minute) if before is not None and index != before else 0

    def _keep(self, minute: int, stratum: Stratum, base: Numbers) -> None:
        if base:
            self._seen[stratum] = minute
            if self._remembers:
                self._fill(self._past, stratum, base)

    def _grown(self, units: Units) -> Units:
        least = self.metric.from_minute
        found = {unit: [row for row in rows if row.age >= least] for unit, rows in units.items()}
        return {unit: rows for unit, rows in found.items() if rows}

    def _fill(self, strata: dict[Stratum, dict[Unit, Blocks]], stratum: Stratum, levels: Numbers) -> None:
        if not levels:
            return
        units = strata.setdefault(stratum, {})
        for unit, level in levels.items():
            blocks = units.get(unit)
            if blocks is None:
                blocks = units[unit] = Blocks(self.metric.most_blocks)
            blocks.levels.append(level)

    def _close(self, index: int, minute: int) -> int:
        least = self.metric.block_minutes // 2 + 1
        filled = [
            stratum
            for stratum, units in self.blocks["candidate"].items()
            if any(blocks.levels for blocks in units.values()) and self._beside(stratum, minute)
        ]
        for strata in (*self.blocks.values(), self._past):
            for units in strata.values():
                for blocks in units.values():
                    blocks.close(index, least)
        if not filled:
            return 0
        self.changed()
        self.matched_minutes += self.metric.block_minutes
        return self.metric.block_minutes if self.groups else 0

    def _beside(self, stratum: Stratum, minute: int) -> bool:
        """Whether the baseline grew in this block, or has ended within a day and is known from before."""
        if any(blocks.levels for blocks in self.blocks["baseline"].get(stratum, {}).values()):
            return True
        last = self._seen.get(stratum)
        if last is None or not self._settings.gone_minutes <= minute - last <= DAY:
            return False
        self.after_end.add(stratum)
        known = bool(self.numbers("baseline", stratum))
        if known:
            self.reports |= {"baseline", "candidate"}
        return known

    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The slope of every instance with enough blocks."""
        return self._slopes(arm, stratum, self.metric.most_blocks)

    def _slopes(self, arm: Arm, stratum: Stratum, last: int) -> Numbers:
        hours = self.metric.block_minutes / 60.0
        return {unit: slope(list(blocks.medians)[-last:]) / hours for unit, blocks in self.known(arm, stratum).items()}

    def known(self, arm: Arm, stratum: Stratum) -> dict[Unit, Blocks]:
        """The instances that count with their blocks: of the same hours where both ran so long, else the baseline's before its end."""
        beside = self._old_enough(self.blocks[arm].get(stratum, {}))
        if beside or arm == "candidate" or stratum not in self.after_end:
            return beside
        return self._old_enough(self._past.get(stratum, {}))

    def from_past(self, stratum: Stratum) -> bool:
        """Whether the baseline's slopes there are those before its end."""
        return stratum in self.after_end and not self._old_enough(self.blocks["baseline"].get(stratum, {}))

    def _old_enough(self, units: dict[Unit, Blocks]) -> dict[Unit, Blocks]:
        return {unit: blocks for unit, blocks in units.items() if len(blocks.medians) >= self._least}

    def strata(self) -> list[Stratum]:
        """Where the candidate has instances that are old enough."""
        return list(self.blocks["candidate"])

    def tolerable(self) -> bool:
        """Whether no instance by itself grows so much faster than the baseline that it is hardly chance: the mean of many would hide it."""
        estimate = self.estimate
        if estimate is None:
            return True
        least = t_quantile(estimate.df, self._settings.watch_alpha / (2 * self._settings.judged_metrics * self._doublings))
        for part in estimate.groups:
            apart = max(self._effect, least * math.sqrt(estimate.variance * (1.0 + 1.0 / len(part.baseline))))
            if max(part.candidate.values()) - part.baseline_mean >= apart:
                return False
        return True

    def minutes(self) -> float:
        """The mean minutes of the candidate's instances that count."""
        counts = [len(blocks.medians) for units in self.blocks["candidate"].values() for blocks in self._old_enough(units).values()]
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
