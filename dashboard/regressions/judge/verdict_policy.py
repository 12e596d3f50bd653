"""From readings to a verdict: hold times, hysteresis and the fixed looks at which a version can
become HEALTHY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.reading_state import CALM, BoundedSeries, Reading
from dashboard.regressions.judge.settings import Settings

Verdict = Literal["roll_back", "watch", "healthy", "not_enough_data"]


@dataclass(slots=True)
class Track:
    """How long one series has said what it says, in minutes of data."""

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
        """Takes the reading after `minutes` more minutes of data."""
        # A wide bin is one observation: it must not fill a hold time alone.
        credit = min(minutes, self.metric.hold_minutes // 2)
        seen = credit if reading.fresh else 0
        self.reading = reading
        if self.released and reading.relapsed:
            self.released = False
        if reading.leaning:
            if self.since is None:
                self.since = minute
            self.leaning += seen
            self.calm = 0
        else:
            self.leaning = 0
            self.calm += credit
        self.regressed = self.regressed + seen if reading.regressed and not self.released else 0
        least = self.metric.watch_minutes or settings.watch_minutes
        if reading.narrow:
            least = max(least, settings.narrow_minutes)
        self.watching = self.leaning >= least or (
            self.watching and self.calm < settings.watch_minutes
        )
        if reading.recovered:
            # The running mean stays high long after the fault is gone: it must not ask for a roll
            # back then.
            self.released = self.released or self.driving
            self.driving = False
        elif (
            self.metric.hard
            and self.regressed >= self.metric.hold_minutes
            and matched >= settings.matched_minutes
        ):
            self.driving = True
        if not reading.leaning and not self.driving and not self.watching:
            self.since = None

    def end(self) -> None:
        """What the series is about is over: it says nothing until it is seen to be bad again."""
        self.released = self.released or self.driving
        self.driving = self.watching = False
        self.regressed = self.leaning = 0
        self.since = None


class JudgedTrack(NamedTuple):
    """A track that counts for the verdict; a minor one carries too little traffic to hold back
    HEALTHY."""

    track: Track
    series: BoundedSeries
    minor: bool


class HealthyLook(NamedTuple):
    """What was seen at a fixed look: `bounds` are the worst changes that the data leaves possible,
    by metric, on the log scale."""

    look: int
    minute: int
    bounds: dict[str, float]


class VerdictPolicy:
    """The verdict so far and every change of it."""

    def __init__(self, deployed_minute: int, settings: Settings) -> None:
        self.verdict: Verdict = "not_enough_data"
        self.since = deployed_minute
        self.transitions: list[tuple[int, Verdict]] = [(deployed_minute, "not_enough_data")]
        self.healthy: HealthyLook | None = None
        self.looks_taken = 0
        self.stale = False
        """Whether HEALTHY was said of what nothing stands beside any more."""
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
        """Decides at the end of a minute; `comparable` is the share of the candidate's calls, None
        while nothing was compared.

        `compared` says whether this minute brought a comparison of how long calls take. Without one
        for long HEALTHY is over while the baseline runs, and at the next look if it does not; what
        the last look said stands then, for nothing more is to come. `drifting` says that the
        version is slower than it was itself: WATCH, and no more.
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
        """Whether a later look has come than the one that said HEALTHY."""
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
            # Too little was seen since the last look to say anything new. The last one waits for
            # it: a version whose calls, or kept minutes, begin a day after its deployment is judged
            # as well.
            self.looks_taken = min(passed, len(looks) - 1)
            return
        self._matched_at_look = min(matched)
        well = all(item.series.tolerable() for item in hard)
        calm = not any(item.track.reading.leaning or item.track.driving for item in judged)
        self.healthy = (
            HealthyLook(looks[passed - 1], minute, bounds) if well and calm and not thin else None
        )
