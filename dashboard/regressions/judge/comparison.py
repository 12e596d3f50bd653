"""A candidate against its baseline, minute after minute: the state that grows, and what it says
now."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dashboard.regressions.judge.environment_diff import Difference
from dashboard.regressions.judge.inputs import Arm, InstanceMinute
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.process.series import ProcessTracks
from dashboard.regressions.judge.region_state import Calls, Region
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.settings import PRODUCTION, Settings
from dashboard.regressions.judge.stalls import StallTracker
from dashboard.regressions.judge.verdict_policy import JudgedTrack, VerdictPolicy


class ArmLifetime:
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


class ArmOverlap:
    """In how many minutes each arm was called since the candidate's calls are steady, and in how
    many both were."""

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
        """Whether one arm is called while the other is not, and again the other way round."""
        fewer = min(self.baseline, self.candidate)
        return fewer > 0 and 10 * self.both < fewer


class Adoption:
    """How the calls of the last hour divide between the arms."""

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, int, int]] = deque()

    def add(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Counts a minute, warm-up included, and forgets what is older than an hour."""
        calls = {"baseline": 0, "candidate": 0}
        for row in rows:
            calls[row.arm] += row.calls if row.outermost else 0
        self._minutes.append((minute, calls["baseline"], calls["candidate"]))
        while self._minutes[0][0] <= minute - 60:
            self._minutes.popleft()

    @property
    def share(self) -> float | None:
        """The candidate's part."""
        baseline, candidate = (sum(entry[number] for entry in self._minutes) for number in (1, 2))
        return candidate / (baseline + candidate) if baseline + candidate else None


class Comparison:
    """Everything that is known about a deployment beside its baseline; minutes must come in order.

    A minute that arrives late means: start a new comparison and replay. The result depends on the
    rows alone. The day before the deployment is needed once the baseline has ended in a stratum: a
    comparison `with_past` takes and keeps it, one without `wants_past` then.
    """

    def __init__(
        self, deployed_minute: int, settings: Settings = PRODUCTION, *, with_past: bool = False
    ) -> None:
        self.settings = settings
        self.deployed_minute = deployed_minute
        self.minute: int | None = None
        self.regions: dict[str, Region] = {}
        self.process = ProcessTracks(settings)
        self.environment: tuple[tuple[int, int], tuple[Difference, ...]] | None = None
        """How the versions' environments differ, by how many instances of each it was read off."""
        self.lives: dict[Arm, ArmLifetime] = {"baseline": ArmLifetime(), "candidate": ArmLifetime()}
        self.policy = VerdictPolicy(deployed_minute, settings)
        self.side_by_side_minutes = 0
        self.same_host_minutes = 0
        self.last_compared: int | None = None
        self.adoption = Adoption()
        self.turns = ArmOverlap()
        self.with_past = with_past
        self.stalls = StallTracker(settings.warm_up_minutes)
        self.agents_differ: frozenset[str] = frozenset()
        """Regions of which the agents of some instances report stalled calls and others do not:
        they are compared without."""
        self.differ_on_graphs: frozenset[str] = frozenset()
        """Those of them with calls that met code without a graph, which count as compiled ones
        then."""

    def add_minute(
        self,
        minute: int,
        rows: Iterable[InstanceMinute],
        states: Iterable[InstanceProcessMinute] = (),
    ) -> None:
        """Takes all rows of one closed minute, in any order: calls by region, and the states of
        processes."""
        if self.minute is not None and minute <= self.minute:
            raise ValueError(
                f"minute {minute} comes after minute {self.minute}: replay the comparison "
                "to add late data"
            )
        self.minute = minute
        if minute < self.deployed_minute:
            if self.with_past:
                for region in self._collect(minute, (row for row in rows if row.arm == "baseline")):
                    region.remember(minute)
                self.process.remember(
                    minute, (state for state in states if state.arm == "baseline")
                )
            return
        rows = list(rows)
        self.adoption.add(minute, rows)
        regions = self._collect(minute, rows)
        self.process.add(minute, states, self.comparisons)
        if not regions:
            return
        last = self.lives["baseline"].last_steady
        if self.lives["candidate"].first_steady is not None:
            self.turns.add(last == minute, self.lives["candidate"].last_steady == minute)
        ago = minute - last if last is not None else None
        lately = ago is not None and ago < self.settings.bin_minutes[1]
        self.side_by_side_minutes += lately and self.lives["candidate"].last_steady == minute
        comparisons = self.comparisons
        before = self._past_calls()
        compared = [region.close(minute, ago, comparisons, self.with_past) for region in regions]
        if any(compared):
            self.last_compared = minute
        self.same_host_minutes += self._past_calls() > before
        if self.lives["candidate"].last_steady == minute:
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

    def drifted(self) -> list[SelfDrift]:
        """Where the candidate is slower than it was itself, by region."""
        return [
            drifted for name in sorted(self.regions) for drifted in self.regions[name].drifted()
        ]

    def judged(self) -> list[JudgedTrack]:
        """The tracks of all regions and of the processes that count for the verdict."""
        processes = self.process.judged()
        if len(self.regions) == 1:
            return [
                item for region in self.regions.values() for item in region.judged(minor=False)
            ] + processes
        minor = set(self.minor_regions())
        called = [region for region in self.regions.values() if not region.quiet]
        return [
            item for region in called for item in region.judged(minor=region.name in minor)
        ] + processes

    def minor_regions(self) -> list[str]:
        """Regions with too few calls to hold back HEALTHY, by name.

        Beside the busiest one and not beside all: of many even regions each would be minor, and
        none could say that the version is well."""
        calls = {
            name: region.calls()[0] for name, region in self.regions.items() if not region.quiet
        }
        least = self.settings.minor_region_share * max(calls.values(), default=0)
        return sorted(name for name, count in calls.items() if count < least)

    @property
    def wants_past(self) -> bool:
        """Whether the day before the deployment would let more be compared."""
        if self.with_past or self.lives["candidate"].first_steady is None:
            return False
        return self.lives["baseline"].last_steady is None or any(
            region.wants_past for region in self.regions.values()
        )

    def calls(self) -> Calls:
        """The candidate's steady calls in all regions, and those that were compared with
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
        """The share of the candidate's calls that had something to stand beside; None without a
        call.

        Calls after the baseline's end are left out where nothing could be there; those on other
        hosts than the baseline's are held against it only where the versions did not run side by
        side before.
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
        # With nothing comparable at all there is nothing to watch either: that is not enough data.
        return self.comparable() or None
