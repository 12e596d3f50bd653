"""Stall budget: a fact about stalled calls beyond their budget, which needs no baseline."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from dashboard.regressions.judge.certain_facts import ObservedFact, StallCounts
from dashboard.regressions.judge.inputs import Arm, InstanceMinute

WINDOW_MINUTES = 30
MIN_STALLED_MINUTES = 10
"""Minimum number of minutes with stalled calls in the last half hour. A burst, as after a start or
for a new shape, ends sooner."""
MIN_CALLS = 20
BUDGET_MULTIPLE, MIN_SIGMAS, EXTRA_CALLS = 2.0, 3.0, 3.0
"""The excess: more than twice the budget, and more than the budget by three standard deviations and
three calls."""
ROLL_BACK_MULTIPLE = 10.0
"""The multiple of the budget that asks for ROLL BACK; less asks for WATCH."""


class HalfHour:
    """The last half hour of one instance, by minute: calls, stalled calls and their
    milliseconds."""

    __slots__ = ("minutes",)

    def __init__(self) -> None:
        self.minutes: deque[list[int]] = deque()

    def add(self, minute: int, row: InstanceMinute) -> None:
        """Adds the calls of one region and bucket."""
        if not self.minutes or self.minutes[-1][0] != minute:
            self.minutes.append([minute, 0, 0, 0])
        last = self.minutes[-1]
        last[1] += row.calls
        last[2] += row.stalled or 0
        last[3] += round(1e3 * (row.stalled_sum or 0.0))
        while self.minutes[0][0] <= minute - WINDOW_MINUTES:
            self.minutes.popleft()


class StallTracker:
    """Stalled calls of every instance. Rows of agents that do not report them are excluded."""

    def __init__(self, warm_up_minutes: int) -> None:
        self._halves: dict[Arm, dict[str, HalfHour]] = {"baseline": {}, "candidate": {}}
        self._called: dict[Arm, int] = {}
        """The last minute with calls of each arm."""
        self._telling: set[Arm] = set()
        self._warm_up = warm_up_minutes
        self._minute = 0

    def add(self, minute: int, rows: Iterable[InstanceMinute]) -> None:
        """Adds the callers' calls of a minute. The first minutes of an instance are excluded."""
        self._minute = minute
        for row in rows:
            if not row.outermost or row.calls <= 0:
                continue
            self._called[row.arm] = minute
            if row.stalled is None:
                continue
            self._telling.add(row.arm)
            if minute - row.first_minute < self._warm_up:
                continue
            halves = self._halves[row.arm]
            half = halves.get(str(row.instance))
            if half is None:
                half = halves[str(row.instance)] = HalfHour()
            half.add(minute, row)

    def facts(self, budget: float) -> list[ObservedFact]:
        """The instances beyond the budget. If the baseline's agents do not report stalled calls, it
        is unknown whether they are new.

        A baseline that has ended counts by its last half hour.
        """
        silent = "baseline" in self._called and "baseline" not in self._telling
        found = []
        for arm, halves in self._halves.items():
            last = self._called.get(arm, 0) if arm == "baseline" else self._minute
            for instance, half in list(halves.items()):
                if half.minutes[-1][0] <= last - WINDOW_MINUTES:
                    del halves[instance]
                elif (fact := find_excess_stalls(arm, instance, half, budget, silent)) is not None:
                    found.append(fact)
        return found


def find_excess_stalls(
    arm: Arm, instance: str, half: HalfHour, budget: float, silent: bool
) -> ObservedFact | None:
    """The fact of one instance; None if the budget or chance explains its stalled calls, or if few
    minutes contain them."""
    calls, stalled = (sum(minute[place] for minute in half.minutes) for place in (1, 2))
    allowed = calls * budget
    stalling = [minute[0] for minute in half.minutes if minute[2]]
    if (
        calls < MIN_CALLS
        or len(stalling) < MIN_STALLED_MINUTES
        or stalled
        <= max(BUDGET_MULTIPLE * allowed, allowed + MIN_SIGMAS * math.sqrt(allowed) + EXTRA_CALLS)
    ):
        return None
    seconds = sum(minute[3] for minute in half.minutes) / 1e3
    share = StallCounts(calls, stalled, seconds, budget)
    grave = stalled >= ROLL_BACK_MULTIPLE * allowed
    return ObservedFact(
        "stalled_calls",
        arm,
        instance,
        stalling[0],
        count=stalled,
        grave=grave,
        baseline_silent=silent,
        stalled=share,
    )
