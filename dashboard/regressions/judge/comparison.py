"""Comparison: the incremental state of a candidate and its baseline, one closed minute at a time.

Algorithm: a fold over minutes. Each minute updates regions and processes, then the verdict policy.
A minute has two parts: calls by region (`region_state`) and states of processes (`process`).

Invariants:

- minutes arrive in strictly increasing order; late data requires a new comparison and a replay;
- the result depends only on the rows: not on their order within a minute, the number of workers, or
  the time of the evaluation;
- warm-up calls count for adoption and for the lifetimes of the arms, but are never compared;
- only outermost regions are compared;
- minutes before the deployment contain the baseline only: the past of its nodes. Only a comparison
  `with_past` keeps them minute by minute;
- all metrics and outermost regions share one `error_budget`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dashboard.regressions.judge.day_history import DayHistory
from dashboard.regressions.judge.environment_diff import Difference
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import Arm, InstanceMinute
from dashboard.regressions.judge.pooled_regions import PooledRegions
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.process.series import ProcessTracks
from dashboard.regressions.judge.region_state import Calls, Region
from dashboard.regressions.judge.runs.comparison import RunComparison
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.settings import PRODUCTION, Settings
from dashboard.regressions.judge.stalls import StallTracker
from dashboard.regressions.judge.verdict_policy import JudgedTrack, VerdictPolicy
from dashboard.regressions.judge.young_minutes import YoungMinutes


class ArmLifetime:
    """First and last minute of one arm, with and without warm-up."""

    __slots__ = ("first", "first_steady", "last", "last_steady")

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self.first_steady: int | None = None
        self.last_steady: int | None = None

    def seen(self, minute: int, steady: bool) -> None:
        """Records calls in a minute."""
        if self.first is None:
            self.first = minute
        self.last = minute
        if steady:
            if self.first_steady is None:
                self.first_steady = minute
            self.last_steady = minute


class ArmOverlap:
    """Minutes with calls of each arm since the candidate has steady calls, and minutes with calls
    of both."""

    __slots__ = ("baseline", "both", "candidate")

    def __init__(self) -> None:
        self.baseline = self.candidate = self.both = 0

    def add(self, baseline: bool, candidate: bool) -> None:
        """Counts a minute."""
        self.baseline += baseline
        self.candidate += candidate
        self.both += baseline and candidate

    @property
    def taken(self) -> bool:
        """True if the arms alternate: each is called while the other is not."""
        fewer = min(self.baseline, self.candidate)
        return fewer > 0 and 10 * self.both < fewer


class Adoption:
    """The division of the last hour's calls between the arms."""

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, int, int]] = deque()

    def add(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Counts a minute, including warm-up, and drops minutes older than an hour."""
        calls = {"baseline": 0, "candidate": 0}
        for row in rows:
            calls[row.arm] += row.calls if row.outermost else 0
        self._minutes.append((minute, calls["baseline"], calls["candidate"]))
        while self._minutes[0][0] <= minute - 60:
            self._minutes.popleft()

    @property
    def share(self) -> float | None:
        """The candidate's share of the calls; None without a call."""
        baseline, candidate = (sum(entry[number] for entry in self._minutes) for number in (1, 2))
        return candidate / (baseline + candidate) if baseline + candidate else None


class Comparison:
    """The state of a deployment compared with its baseline. Minutes must arrive in order.

    A late minute requires a new comparison and a replay. The result depends on the rows alone. The
    day before the deployment is needed once the baseline has ended in a stratum: a comparison
    `with_past` reads and keeps the day, one without it then reports `wants_past`.
    """

    def __init__(
        self,
        deployed_minute: int,
        settings: Settings = PRODUCTION,
        *,
        with_past: bool = False,
        days: DayHistory | None = None,
    ) -> None:
        self.settings = settings
        self._budget = settings.budget()
        self.deployed_minute = deployed_minute
        self.minute: int | None = None
        self.regions: dict[str, Region] = {}
        self.pooled = PooledRegions(settings)
        self.process = ProcessTracks(settings)
        self.environment: tuple[tuple[int, int], tuple[Difference, ...]] | None = None
        """Differences between the versions' environments, with the number of instances of each that
        they were read from."""
        self.lives: dict[Arm, ArmLifetime] = {"baseline": ArmLifetime(), "candidate": ArmLifetime()}
        self.policy = VerdictPolicy(deployed_minute, settings)
        self.side_by_side_minutes = 0
        self.same_host_minutes = 0
        self.last_compared: int | None = None
        self.adoption = Adoption()
        self.turns = ArmOverlap()
        self.with_past, self.days = with_past, days
        self.stalls = StallTracker(settings.warm_up_minutes)
        self.young = YoungMinutes(settings)
        self.agents_differ: frozenset[str] = frozenset()
        """Regions for which only some instances' agents report stalled calls. They are compared
        without stalled calls."""
        self.differ_on_graphs: frozenset[str] = frozenset()
        """Of those, the regions with calls that ran code without a graph. Such calls then count as
        compiled."""
        self.runs: RunComparison | None = None
        """The comparison of single runs, if the versions are short jobs."""

    def add_minute(
        self,
        minute: int,
        rows: Iterable[InstanceMinute],
        states: Iterable[InstanceProcessMinute] = (),
    ) -> None:
        """Adds all rows of one closed minute, in any order: calls by region, and states of
        processes. Raises ValueError if the minute is not newer than the last one."""
        if self.minute is not None and minute <= self.minute:
            raise ValueError(
                f"minute {minute} comes after minute {self.minute}: replay the comparison "
                "to add late data"
            )
        self.minute = minute
        if minute < self.deployed_minute:
            self._add_past(minute, rows, states)
            return
        rows = list(rows)
        self.adoption.add(minute, rows)
        self.young.add(minute, rows)
        regions = self._collect(minute, rows)
        self.process.add(minute, states, self.budget)
        if regions:
            self._compare(minute, regions)

    def _add_past(
        self,
        minute: int,
        rows: Iterable[InstanceMinute],
        states: Iterable[InstanceProcessMinute],
    ) -> None:
        regions = self._collect(minute, (row for row in rows if row.arm == "baseline"))
        for region in regions:
            region.remember(minute, self.with_past)
        if len(self.regions) > 1:
            self.pooled.remember(minute, regions)
        if self.with_past:
            self.process.remember(minute, (state for state in states if state.arm == "baseline"))

    def _compare(self, minute: int, regions: list[Region]) -> None:
        """Closes the minute of the regions with calls, then updates the verdict."""
        last = self.lives["baseline"].last_steady
        if self.lives["candidate"].first_steady is not None:
            self.turns.add(last == minute, self.lives["candidate"].last_steady == minute)
        ago = minute - last if last is not None else None
        lately = ago is not None and ago < self.settings.bin_minutes[1]
        self.side_by_side_minutes += lately and self.lives["candidate"].last_steady == minute
        before = self._past_calls()
        compared = [region.close(minute, ago, self.budget, self.with_past) for region in regions]
        if any(compared):
            self.last_compared = minute
        if self.budget.regions > 1:
            self.pooled.add(minute, regions, self.budget)
        self.same_host_minutes += self._past_calls() > before
        if self.lives["candidate"].last == minute:
            for region in self.regions.values():
                region.end_if_quiet(minute)
            self.policy.step(
                minute,
                self.judged(),
                self._comparable_for_policy(),
                compared=any(compared),
                baseline_runs=ago is not None and ago < self.settings.gone_minutes,
                drifting=bool(self.drifted()),
            )

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
            if not steady and row.arm == "baseline":
                continue
            name = row.region
            region = touched.get(name)
            if region is None:
                region = regions.get(name) or Region(name, self.settings, self.days)
                touched[name] = regions[name] = region
            region.collect(row, steady)
        for arm, steady in arms:
            self.lives[arm].seen(minute, steady)
        return list(touched.values())

    @property
    def budget(self) -> ErrorBudget:
        """The error budget that all metrics and outermost regions share."""
        compared = sum(region.is_compared for region in self.regions.values())
        if self._budget.regions != max(1, compared):
            self._budget = self.settings.budget(compared)
        return self._budget

    def drifted(self) -> list[SelfDrift]:
        """Drifts of the candidate from its own first day, by region."""
        return [
            drifted for name in sorted(self.regions) for drifted in self.regions[name].drifted()
        ]

    def judged(self) -> list[JudgedTrack]:
        """The tracks of all regions and processes that count for the verdict."""
        processes = self.process.judged()
        if len(self.regions) == 1:
            return [
                item for region in self.regions.values() for item in region.judged(minor=False)
            ] + processes
        minor = set(self.minor_regions())
        called = [region for region in self.regions.values() if not region.quiet]
        found = [item for region in called for item in region.judged(minor=region.name in minor)]
        pooled = self.pooled.judged(called) if self.budget.regions > 1 else []
        return found + pooled + processes

    def minor_regions(self) -> list[str]:
        """Names of regions with too few calls to hold back HEALTHY.

        The limit is relative to the busiest region, not to the total. With many equal regions, each
        would be minor in relation to the total, and none could show that the version is healthy.
        """
        calls = {
            name: region.calls()[0] for name, region in self.regions.items() if not region.quiet
        }
        least = self.settings.minor_region_share * max(calls.values(), default=0)
        return sorted(name for name, count in calls.items() if count < least)

    @property
    def wants_past(self) -> bool:
        """True if the day before the deployment would allow more comparisons."""
        if self.with_past or self.lives["candidate"].first_steady is None:
            return False
        return self.lives["baseline"].last_steady is None or any(
            region.wants_past for region in self.regions.values()
        )

    def calls(self) -> Calls:
        """The candidate's steady calls in all regions, and the calls that were compared with
        nothing."""
        return Calls(
            *(
                sum(counts)
                for counts in zip(
                    *(region.calls() for region in self.regions.values()), strict=True
                )
            )
        )

    def comparable(self) -> float | None:
        """The share of the candidate's calls with a counterpart; None without any.

        Calls after the baseline's end are excluded where no counterpart can exist. Calls on hosts
        without the baseline count against the share only if the versions did not run side by side
        before.
        """
        if not self.regions:
            return None
        total, alone, after, away = self.calls()
        if self.side_by_side_minutes >= self.settings.matched_minutes:
            after, away = after + away, 0
        return 1.0 - (alone + away) / (total - after) if total > after else None

    def _past_calls(self) -> int:
        return sum(region.past_calls for region in self.regions.values())

    def _comparable_for_policy(self) -> float | None:
        if self.side_by_side_minutes + self.same_host_minutes < self.settings.watch_minutes:
            return None
        # If nothing is comparable, there is nothing to watch either. That is not enough data.
        return self.comparable() or None
