"""Process tracks: one series per process metric of a candidate and its baseline, in addition to the
regions."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import Arm, Stratum
from dashboard.regressions.judge.process.comparison import Arms, Units
from dashboard.regressions.judge.process.counts import MissSeries, StormSeries
from dashboard.regressions.judge.process.growth import GrowthSeries
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.process.levels import LevelSeries, SingleValueSeries
from dashboard.regressions.judge.process.metrics import (
    GrowthMetric,
    LevelMetric,
    ProcessMetric,
    SingleValueMetric,
    StormMetric,
)
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.verdict_policy import JudgedTrack, Track

ProcessSeries = LevelSeries | GrowthSeries | SingleValueSeries | StormSeries | MissSeries


def process_series(metric: ProcessMetric, settings: Settings) -> ProcessSeries:
    """The series for a metric."""
    if isinstance(metric, LevelMetric):
        return LevelSeries(metric, settings)
    if isinstance(metric, GrowthMetric):
        return GrowthSeries(metric, settings)
    if isinstance(metric, SingleValueMetric):
        return SingleValueSeries(metric, settings)
    return (
        StormSeries(metric, settings)
        if isinstance(metric, StormMetric)
        else MissSeries(metric, settings)
    )


def confirming_series(series: ProcessSeries, settings: Settings) -> LevelSeries | None:
    """The series that must also be up, if the metric requires one; else None."""
    if not isinstance(series, LevelSeries) or series.metric.confirmed_by is None:
        return None
    return LevelSeries(series.metric.confirmed_by, settings)


class OutOfMemoryCount:
    """Number of out-of-memory events of an instance, with their first and last minute."""

    __slots__ = ("count", "first", "last")

    def __init__(self, minute: int) -> None:
        self.first = self.last = minute
        self.count = 0


class ProcessTracks:
    """The series and tracks of all process metrics."""

    def __init__(self, settings: Settings) -> None:
        self.entries = [
            (process_series(metric, settings), Track(metric)) for metric in settings.process_metrics
        ]
        self.confirming = {
            series: confirming
            for series, _ in self.entries
            if (confirming := confirming_series(series, settings))
        }
        self.ooms: dict[Arm, dict[str, OutOfMemoryCount]] = {"baseline": {}, "candidate": {}}
        self.instances: dict[Arm, set[str]] = {"baseline": set(), "candidate": set()}
        self.early: dict[Arm, int] = {"baseline": 0, "candidate": 0}
        """Recompiles of instances that are too young for the rate of the storm metric."""
        self._storm_from = min(
            (one.from_minute for one in settings.process_metrics if isinstance(one, StormMetric)),
            default=0,
        )
        self._settings = settings

    def remember(self, minute: int, states: Iterable[InstanceProcessMinute]) -> None:
        """Adds a minute of the baseline before the deployment. The cost of a start is comparable at
        any time."""
        strata = self._strata(states)
        lives = split_by_start(strata)
        for series, _ in self.entries:
            if isinstance(series, SingleValueSeries | MissSeries):
                series.add(minute, lives)
            elif isinstance(series, LevelSeries):
                series.remember(minute, strata)
                if series in self.confirming:
                    self.confirming[series].remember(minute, strata)
            elif isinstance(series, GrowthSeries):
                series.remember(minute, lives)

    def add(
        self, minute: int, states: Iterable[InstanceProcessMinute], budget: ErrorBudget
    ) -> None:
        """Adds all rows of one closed minute, in any order. The first minutes of an instance are
        excluded."""
        strata = self._strata(states)
        if not strata:
            return
        lives = split_by_start(strata)
        for series, track in self.entries:
            minutes = series.add(minute, strata if isinstance(series, LevelSeries) else lives)
            confirming = self.confirming.get(series)
            if confirming is not None:
                confirming.add(minute, strata)
            if minutes:
                reading = series.read(budget, closely=track.driving or track.released)
                if (
                    confirming is not None
                    and reading.regressed
                    and not confirming.read(budget, closely=False).leaning
                ):
                    reading = reading._replace(regressed=False)
                track.step(minute, minutes, reading, series.matched_minutes, self._settings)

    def _strata(self, states: Iterable[InstanceProcessMinute]) -> dict[Stratum, Arms]:
        strata: dict[Stratum, Arms] = {}
        warm_up = self._settings.warm_up_minutes
        for row in states:
            self.instances[row.arm].add(str(row.instance))
            if row.ooms:
                self._out_of_memory(row)
            if row.recompiles and row.age < self._storm_from:
                self.early[row.arm] += row.recompiles
            if row.minute - row.first_minute < warm_up:
                continue
            arms = strata.get(row.stratum)
            if arms is None:
                arms = strata[row.stratum] = Arms({}, {})
            units = arms.candidate if row.arm == "candidate" else arms.baseline
            units.setdefault(row.unit, []).append(row)
        return strata

    def _out_of_memory(self, row: InstanceProcessMinute) -> None:
        known = self.ooms[row.arm]
        found = known.setdefault(str(row.instance), OutOfMemoryCount(row.minute))
        found.count += row.ooms
        found.last = row.minute

    def judged(self) -> list[JudgedTrack]:
        """The tracks that count for the verdict."""
        return [
            JudgedTrack(track, series, False)
            for series, track in self.entries
            if not track.metric.muted
        ]


def split_by_start(strata: dict[Stratum, Arms]) -> dict[Stratum, Arms]:
    """The same rows by process: each process starts and grows separately, while successive
    processes on a host share one level."""
    return {
        stratum: Arms(_split_units(arms.baseline), _split_units(arms.candidate))
        for stratum, arms in strata.items()
    }


def _split_units(units: Units) -> Units:
    if all(row.life is None for rows in units.values() for row in rows):
        return units
    found: Units = {}
    for unit, rows in units.items():
        for row in rows:
            found.setdefault(unit if row.life is None else row.life, []).append(row)
    return found
