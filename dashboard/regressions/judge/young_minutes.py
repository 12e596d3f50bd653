"""Young minutes: the instance-minutes and calls of each arm that warm-up excludes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.regressions.judge.inputs import Arm, InstanceMinute
from dashboard.regressions.judge.settings import Settings, WarmUpSource

LARGE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ArmWarmUp:
    """Instance-minutes and calls of one arm since the deployment, and how many of them warm-up
    excludes."""

    excluded_minutes: int = 0
    excluded_calls: int = 0
    minutes: int = 0
    calls: int = 0

    @property
    def share(self) -> float:
        """The excluded share of the instance-minutes; 0 without a minute."""
        return self.excluded_minutes / self.minutes if self.minutes else 0.0


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up of a verdict: the first `minutes` of every process, the source of this number,
    and its effect on both arms."""

    minutes: int
    source: WarmUpSource = "default"
    processes: int = 0
    """Number of past processes that a learned value is based on."""
    baseline: ArmWarmUp = ArmWarmUp()
    candidate: ArmWarmUp = ArmWarmUp()


class _ArmCount:
    __slots__ = ("calls", "excluded_calls", "excluded_minutes", "minutes")

    def __init__(self) -> None:
        self.excluded_minutes = self.excluded_calls = self.minutes = self.calls = 0


class YoungMinutes:
    """Counts the minutes of all instances by arm. Minutes in which an instance followed a command
    never arrive here."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._arms: dict[Arm, _ArmCount] = {"baseline": _ArmCount(), "candidate": _ArmCount()}

    def add(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Counts the rows of one minute. An instance counts once in all regions, and as excluded
        if all of its rows are."""
        warm_up = self._settings.warm_up_minutes
        instances: dict[tuple[Arm, str | int], bool] = {}
        for row in rows:
            if row.calls <= 0 or not row.outermost:
                continue
            count, young = self._arms[row.arm], minute - row.first_minute < warm_up
            count.calls += row.calls
            if young:
                count.excluded_calls += row.calls
            key = (row.arm, row.instance)
            instances[key] = young and instances.get(key, True)
        for (arm, _), young in instances.items():
            self._arms[arm].minutes += 1
            self._arms[arm].excluded_minutes += young

    def summary(self) -> WarmUp:
        """The warm-up of an outcome."""
        settings = self._settings
        return WarmUp(
            settings.warm_up_minutes,
            settings.warm_up_source,
            settings.warm_up_processes,
            _freeze(self._arms["baseline"]),
            _freeze(self._arms["candidate"]),
        )

    def dominates(self, minute: int, first: int) -> bool:
        """True if warm-up excludes most of the candidate's minutes although the candidate, called
        since minute `first`, is old enough for a process without restarts to be past it."""
        settings = self._settings
        if minute - first < 2 * settings.warm_up_minutes + settings.matched_minutes:
            return False
        return _freeze(self._arms["candidate"]).share > LARGE_SHARE


def _freeze(count: _ArmCount) -> ArmWarmUp:
    return ArmWarmUp(count.excluded_minutes, count.excluded_calls, count.minutes, count.calls)
