"""Verdict policy: turns readings into a verdict, with hold times, hysteresis and fixed looks.

Algorithm: a state machine per series (`Track`) and one per deployment (`VerdictPolicy`).

- ROLL BACK: a hard series is regressed for `hold_minutes` of data, after `matched_minutes`; for
  less, down to LEAST_HOLD_MINUTES, if the change is large. The verdict ends when recent data has
  recovered, and returns only after a relapse.
- WATCH: a series leans for `watch_minutes`, or for `narrow_minutes` while one instance accounts for
  the change; or too few calls are comparable; or the version drifts.
- HEALTHY: at a fixed look, every hard series rules out the tolerated change, and no series leans.
  The result of a look remains until a later look repeats it or its best estimate contradicts it;
  ROLL BACK revokes it.
- NOT ENOUGH DATA: everything else.

Invariants:

- hold times count minutes of data, not of time; one bin adds at most half of a hold time;
- a look waits for new matched data since the previous one;
- HEALTHY ends after `stale_minutes` without a comparison while the baseline runs.

Source: non-inferiority test at fixed looks; the hold times are calibrated on simulated fleets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.reading_state import CALM, BoundedSeries, Reading
from dashboard.regressions.judge.settings import Settings

LEAST_HOLD_MINUTES = 3
HOLD_SIZE = 2.0
"""The change, in units of the smallest effect, up to which the full hold time applies. Beyond, the
hold time shrinks in proportion."""

Verdict = Literal["roll_back", "watch", "healthy", "not_enough_data"]


@dataclass(slots=True)
class Track:
    """Duration of a series' state, in minutes of data."""

    metric: Metric
    reading: Reading = CALM
    regressed: int = 0
    leaning: int = 0
    calm: int = 0
    since: int | None = None
    watching: bool = False
    driving: bool = False
    released: bool = False

    def step(
        self, minute: int, minutes: int, reading: Reading, matched: int, settings: Settings
    ) -> None:
        """Applies the reading after `minutes` more minutes of data."""
        shrink = min(1.0, HOLD_SIZE / max(reading.size, 1e-9))
        needed = max(LEAST_HOLD_MINUTES, self.metric.hold_minutes * shrink)
        # A wide bin is one observation, so it must not fill a hold time alone.
        credit = min(minutes, self.metric.hold_minutes // 2)
        held = minutes if minutes == 1 else min(minutes, math.ceil(needed / 2))
        seen = credit if reading.fresh else 0
        self.reading = reading
        self.released = self.released and not reading.relapsed
        if reading.leaning:
            if self.since is None:
                self.since = minute
            self.leaning += seen
            self.calm = 0
        else:
            self.leaning = 0
            self.calm += credit
        if not reading.regressed or self.released:
            self.regressed = 0
        elif reading.fresh:
            self.regressed += held
        self.watching = self.leaning >= self._watch_minutes(reading, shrink, settings) or (
            self.watching and self.calm < settings.watch_minutes
        )
        if reading.recovered:
            # The running mean stays high long after the fault is gone, and must not ask for a
            # rollback then.
            self.released = self.released or self.driving
            self.driving = False
        elif (
            self.metric.hard
            and self.regressed >= needed
            and matched >= max(LEAST_HOLD_MINUTES, settings.matched_minutes * shrink)
        ):
            self.driving = True
        if not reading.leaning and not self.driving and not self.watching:
            self.since = None

    def _watch_minutes(self, reading: Reading, shrink: float, settings: Settings) -> float:
        """The hold time of WATCH."""
        least = (self.metric.watch_minutes or settings.watch_minutes) * shrink
        return max(LEAST_HOLD_MINUTES, least, settings.narrow_minutes if reading.narrow else 0)

    def end(self) -> None:
        """Ends the series' finding, because its subject is gone. The series is silent until it
        regresses again."""
        self.released = self.released or self.driving
        self.driving = self.watching = False
        self.regressed = self.leaning = 0
        self.since = None


def is_driving(track: Track, verdict: Verdict) -> bool:
    """True if the verdict rests on this series."""
    return (
        track.driving if verdict == "roll_back" else track.watching if verdict == "watch" else False
    )


class JudgedTrack(NamedTuple):
    """A track that counts for the verdict. A minor track has too little traffic to hold back
    HEALTHY."""

    track: Track
    series: BoundedSeries
    minor: bool


class HealthyLook(NamedTuple):
    """Result of a fixed look. `bounds` are the largest changes that the data does not rule out, by
    metric, on the log scale."""

    look: int
    minute: int
    bounds: dict[str, float]


class LostHealthy(NamedTuple):
    """The fixed look that ended HEALTHY, and the metrics that contradicted it or leaned."""

    look: int
    metrics: tuple[str, ...]


class VerdictPolicy:
    """The current verdict and all of its changes."""

    def __init__(self, deployed_minute: int, settings: Settings) -> None:
        self.verdict: Verdict = "not_enough_data"
        self.since = deployed_minute
        self.transitions: list[tuple[int, Verdict]] = [(deployed_minute, "not_enough_data")]
        self.healthy: HealthyLook | None = None
        self.lost: LostHealthy | None = None
        """The look that ended the last HEALTHY; None while HEALTHY holds."""
        self.looks_taken = 0
        self.stale = False
        """True if the HEALTHY verdict has no baseline left to compare with."""
        self._apart = 0
        self._deployed = deployed_minute
        self._settings = settings
        self._matched_at_look = 0

    def step(
        self,
        minute: int,
        judged: Sequence[JudgedTrack],
        comparable: float | None,
        *,
        compared: bool = True,
        baseline_runs: bool = True,
        drifting: bool = False,
    ) -> None:
        """Updates the verdict at the end of a minute. `comparable` is the comparable share of the
        candidate's calls, None while nothing was compared.

        `compared` is True if call time was compared in this minute. After `stale_minutes` without a
        comparison, HEALTHY ends if the baseline runs, else at the next look. After the last look it
        remains, because no further data will come. `drifting` means that the version is slower than
        on its first day; it raises WATCH at most.
        """
        self._apart = 0 if compared else self._apart + 1
        thin = comparable is not None and comparable < self._settings.comparable_share
        verdict: Verdict = "not_enough_data"
        self._look(minute, judged, thin)
        self.stale = self.healthy is not None and self._apart >= self._settings.stale_minutes
        self.stale = self.stale and (baseline_runs or self._look_is_due(minute))
        if any(item.track.driving for item in judged):
            verdict = "roll_back"
            self.healthy = None
        elif thin or drifting or any(item.track.watching for item in judged):
            verdict = "watch"
        elif self.healthy is not None and not self.stale:
            verdict = "healthy"
        if verdict != self.verdict:
            self.verdict, self.since = verdict, minute
            self.transitions.append((minute, verdict))

    def _look_is_due(self, minute: int) -> bool:
        """True if a later look than the HEALTHY one is due."""
        return any(
            self.healthy and self.healthy.look < look <= minute + 1 - self._deployed
            for look in self._settings.looks
        )

    def _look(self, minute: int, judged: Sequence[JudgedTrack], thin: bool) -> None:
        looks = self._settings.looks
        passed = self.looks_taken
        while passed < len(looks) and minute + 1 - self._deployed >= looks[passed]:
            passed += 1
        if passed == self.looks_taken:
            return
        previous = looks[self.looks_taken - 1] if self.looks_taken else 0
        self.looks_taken = passed
        hard = [
            item
            for item in judged
            if item.track.metric.hard and not item.minor and item.series.expected()
        ]
        bounds: dict[str, float] = {}
        matched = []
        for item in hard:
            metric, bound = item.track.metric, item.series.bound()
            if bound is not None:
                bounds[metric.name] = max(bound, bounds.get(metric.name, bound))
                matched += [item.series.matched_minutes] if metric.leads else []
        if not matched or min(matched) - self._matched_at_look < (looks[passed - 1] - previous) / 2:
            # Too little data since the last look for a new result. The last look waits for data, so
            # a version whose calls or retained minutes begin a day late is evaluated, too.
            self.looks_taken = min(passed, len(looks) - 1)
            return
        self._matched_at_look = min(matched)
        well = all(item.series.tolerable() for item in hard)
        calm = not any(item.track.reading.leaning or item.track.driving for item in judged)
        if well and calm and not thin:
            self.healthy, self.lost = HealthyLook(looks[passed - 1], minute, bounds), None
            return
        against = [item.track.metric.name for item in hard if item.series.contradicts()]
        against += [i.track.metric.name for i in judged if i.track.reading.leaning]
        if thin or not calm or against:
            if self.healthy is not None:
                self.lost = LostHealthy(looks[passed - 1], tuple(dict.fromkeys(against)))
            self.healthy = None
