"""Growth: the running state of process growth, as one robust slope per instance over blocks of
minutes.

A leak is memory in use that keeps growing. A process's peak is a running maximum: it climbs for
hours in a young process, because a longer run meets larger batches, and cannot fall. Therefore:

- the level is memory in use, and a block counts with its lowest minute: whether a sample falls
  within a call or between two calls is unrelated to a leak, and a leak raises the minimum;
- growth is compared at equal age of the processes where the baseline's growth at that age is known:
  memory settles in the first hours of any process. A baseline older than the retained minutes is
  compared within the same hours;
- a leak persists: after the first two hours, the following blocks must grow on their own. No growth
  is reported before that second evaluation, so memory that settles late is no finding.

Algorithm: the Theil-Sen estimator (Theil, 1950; Sen, 1968) per instance; the slopes are pooled as
in `pooled_estimate`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import Arm, Stratum
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.pooled_estimate import Unit, pool_change, t_quantile
from dashboard.regressions.judge.process.comparison import (
    Arms,
    ComparedSeries,
    Numbers,
    Strata,
    Units,
    log_highest,
    make_groups,
)
from dashboard.regressions.judge.process.metrics import GrowthMetric
from dashboard.regressions.judge.reading_state import Reading
from dashboard.regressions.judge.settings import Settings

Points = list[tuple[int, float]]
"""The lowest levels of closed blocks, with the number of each block."""
UnitPoints = dict[Unit, Points]


class Blocks:
    """The levels of one process in blocks of minutes: the lowest of each closed block, and all of
    the open one."""

    __slots__ = ("begun", "floors", "levels")

    def __init__(self, begun: int, most: int) -> None:
        self.begun = begun
        """The block in which the process began."""
        self.floors: deque[tuple[int, float]] = deque(maxlen=most)
        self.levels: list[float] = []

    def close(self, index: int, least: int) -> None:
        """Closes the block. A block with too few minutes is dropped."""
        if len(self.levels) >= least:
            self.floors.append((index, min(self.levels)))
        self.levels.clear()


class GrowthSeries(ComparedSeries):
    """Growth of each settled instance's level per hour.

    If the baseline has ended, the growth of its instances until then is compared: a leak must be
    found after a rollout, too.
    """

    def __init__(self, metric: GrowthMetric, settings: Settings) -> None:
        super().__init__(metric, settings)
        self.metric = metric
        self.blocks: dict[Arm, dict[Stratum, dict[Unit, Blocks]]] = {
            "baseline": {},
            "candidate": {},
        }
        self.after_end: set[Stratum] = set()
        """Strata compared with the baseline's growth before its end."""
        self._begun: dict[Stratum, int] = {}
        """The first block with levels of the candidate."""
        self._seen: dict[Stratum, int] = {}
        self._open: int | None = None
        self._least = metric.least_minutes // metric.block_minutes
        self._second_look = metric.confirm_minutes // metric.block_minutes

    def remember(self, minute: int, strata: Strata) -> None:
        """Adds a minute of the baseline before the deployment."""
        self._turn(minute)
        for stratum, arms in strata.items():
            self._fill("baseline", stratum, minute, self._grown(arms.baseline))

    def add(self, minute: int, strata: Strata) -> int:
        """Adds a minute. A closed block is one observation of as many minutes."""
        ended = self._turn(minute)
        for stratum, arms in strata.items():
            grown = Arms(self._grown(arms.baseline), self._grown(arms.candidate))
            base = self._fill("baseline", stratum, minute, grown.baseline)
            cand = self._fill("candidate", stratum, minute, grown.candidate)
            self.note(grown, base, cand)
            if cand:
                self._begun.setdefault(stratum, minute // self.metric.block_minutes)
        return ended

    def _turn(self, minute: int) -> int:
        """Closes the open block if the minute belongs to the next one. Returns the number of
        compared minutes."""
        index, before = minute // self.metric.block_minutes, self._open
        self._open = index
        return self._close(before, minute) if before is not None and index != before else 0

    def _grown(self, units: Units) -> Units:
        least = self.metric.from_minute
        found = {unit: [row for row in rows if row.age >= least] for unit, rows in units.items()}
        return {unit: rows for unit, rows in found.items() if rows}

    def _fill(self, arm: Arm, stratum: Stratum, minute: int, grown: Units) -> Numbers:
        levels = log_highest(grown, self.metric.value)
        if levels and arm == "baseline":
            self._seen[stratum] = minute
        units = self.blocks[arm].setdefault(stratum, {}) if levels else {}
        for unit, level in levels.items():
            blocks = units.get(unit)
            if blocks is None:
                begun = min(row.first_minute for row in grown[unit]) // self.metric.block_minutes
                # The baseline's blocks are kept for another day, which may contain its youth.
                most = self.metric.most_blocks + (
                    DAY_MINUTES // self.metric.block_minutes if arm == "baseline" else 0
                )
                blocks = units[unit] = Blocks(begun, most)
            blocks.levels.append(level)
        return levels

    def _close(self, index: int, minute: int) -> int:
        least = self.metric.block_minutes // 2 + 1
        filled = [
            stratum
            for stratum, units in self.blocks["candidate"].items()
            if any(blocks.levels for blocks in units.values()) and self._beside(stratum, minute)
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

    def _beside(self, stratum: Stratum, minute: int) -> bool:
        """True if the baseline grew in this block, or ended within a day and has known slopes."""
        if any(blocks.levels for blocks in self.blocks["baseline"].get(stratum, {}).values()):
            return True
        last = self._seen.get(stratum)
        if last is None or not self._settings.gone_minutes <= minute - last <= DAY_MINUTES:
            return False
        self.after_end.add(stratum)
        known = bool(self.numbers("baseline", stratum))
        if known:
            self.reports |= {"baseline", "candidate"}
        return known

    def numbers(self, arm: Arm, stratum: Stratum) -> Numbers:
        """The slope of every instance with enough blocks."""
        return self._slopes(self.known(arm, stratum))

    def _slopes(self, grown: UnitPoints) -> Numbers:
        hours = self.metric.block_minutes / 60.0
        return {unit: slope(points) / hours for unit, points in grown.items()}

    def known(self, arm: Arm, stratum: Stratum) -> UnitPoints:
        """The blocks of the counted instances: the baseline's at the candidate's age, else in the
        same hours, else before its end."""
        units = self.blocks[arm].get(stratum, {})
        if arm == "candidate":
            return self._old_enough({unit: list(blocks.floors) for unit, blocks in units.items()})
        return (
            self._same_age(stratum, units)
            or self._same_hours(stratum, units)
            or self._before_end(stratum, units)
        )

    def _same_age(self, stratum: Stratum, units: dict[Unit, Blocks]) -> UnitPoints:
        candidates = self.known("candidate", stratum)
        if not candidates:
            return {}
        begun = {unit: self.blocks["candidate"][stratum][unit].begun for unit in candidates}
        first = min(points[0][0] - begun[unit] for unit, points in candidates.items())
        last = max(points[-1][0] - begun[unit] for unit, points in candidates.items())
        found = {
            unit: [point for point in blocks.floors if first <= point[0] - blocks.begun <= last]
            for unit, blocks in units.items()
        }
        # A few blocks of those ages give a far less certain slope than all of them.
        least = max(self._least, 3 * max(map(len, candidates.values())) // 4)
        return {unit: points for unit, points in found.items() if len(points) >= least}

    def _same_hours(self, stratum: Stratum, units: dict[Unit, Blocks]) -> UnitPoints:
        begun = self._begun.get(stratum, 0)
        most = self.metric.most_blocks
        return self._old_enough(
            {
                unit: [point for point in blocks.floors if point[0] >= begun][-most:]
                for unit, blocks in units.items()
            }
        )

    def _before_end(self, stratum: Stratum, units: dict[Unit, Blocks]) -> UnitPoints:
        if stratum not in self.after_end:
            return {}
        return self._old_enough(
            {
                unit: list(blocks.floors)[-self.metric.most_blocks :]
                for unit, blocks in units.items()
            }
        )

    def from_past(self, stratum: Stratum) -> bool:
        """True if the baseline's slopes are from hours before the candidate's."""
        begun = self._begun.get(stratum, 0)
        return any(points[0][0] < begun for points in self.known("baseline", stratum).values())

    def _old_enough(self, grown: UnitPoints) -> UnitPoints:
        return {unit: points for unit, points in grown.items() if len(points) >= self._least}

    def read(self, budget: ErrorBudget, closely: bool) -> Reading:
        """The reading of the slopes, if a second look confirms it."""
        reading = super().read(budget, closely)
        return (
            reading
            if not reading.leaning or self.is_confirmed()
            else reading._replace(regressed=False, leaning=False)
        )

    def is_confirmed(self) -> bool:
        """True if the blocks after the first evaluation also grow, by at least the smallest
        effect."""
        looks = []
        for stratum in self.strata():
            later = {
                unit: self._later(points)
                for unit, points in self.known("candidate", stratum).items()
            }
            cand = {
                unit: points for unit, points in later.items() if len(points) >= self._second_look
            }
            base = {
                unit: points[-self._least :]
                for unit, points in self.known("baseline", stratum).items()
            }
            looks.append((stratum, self._slopes(base), self._slopes(cand)))
        found = make_groups(looks)
        return bool(found) and pool_change(found) >= self._effect

    def _later(self, points: Points) -> Points:
        """The newest blocks, without those of the first evaluation."""
        return points[self._least :][-self._least :]

    def strata(self) -> list[Stratum]:
        """The strata with instances of the candidate."""
        return list(self.blocks["candidate"])

    def tolerable(self) -> bool:
        """True if no single instance grows faster than the baseline by more than chance; the mean
        of many would hide it."""
        estimate = self.estimate
        if estimate is None:
            return True
        count = sum(len(part.candidate) for part in estimate.groups)
        least = t_quantile(estimate.df, self._settings.healthy_alpha / (4 * count))
        for part in estimate.groups:
            apart = max(
                self._effect,
                least * math.sqrt(estimate.variance * (1.0 + 1.0 / len(part.baseline))),
            )
            if max(part.candidate.values()) - part.baseline_mean >= apart:
                return False
        return True

    def minutes(self) -> float:
        """Mean minutes of the counted instances, of the version with fewer, whose slopes are less
        certain."""
        return min(self._mean_minutes("baseline"), self._mean_minutes("candidate"))

    def _mean_minutes(self, arm: Arm) -> float:
        counts = [
            len(points)
            for group in self.groups
            for points in self.known(arm, group.stratum).values()
        ]
        return self.metric.block_minutes * sum(counts) / len(counts)

    def recent_change(self) -> float | None:
        """The change of the slopes over the newest blocks; None while there are no older blocks."""
        if not self.groups or self._mean_minutes("candidate") < 2 * self.metric.least_minutes:
            return None
        newest = make_groups(
            [
                (name, self._newest("baseline", name), self._newest("candidate", name))
                for name in self.strata()
            ]
        )
        return pool_change(newest) if newest else None

    def _newest(self, arm: Arm, stratum: Stratum) -> Numbers:
        return self._slopes(
            {unit: points[-self._least :] for unit, points in self.known(arm, stratum).items()}
        )


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The Theil-Sen slope: the median of the slopes between all pairs of points. Bursts and single
    steps have little influence."""
    return median(
        [(b - a) / (j - i) for n, (i, a) in enumerate(points) for j, b in points[n + 1 :]]
    )
