"""Stored evidence: the typed rows of a verdict. Pages, files, the API and notifications show these
rows, so the same verdict has the same numbers everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.fleet.metrics.eager_causes import format_causes
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import MetricEntry, find_metric
from dashboard.vocabulary.numbers import SPACE
from dashboard.vocabulary.severity import ALERTING_VERDICTS, NO_ANSWER, REGRESSED

STARTS = ("cold_start", "compile_time", "cache")
"""Metrics of the start of an instance."""
RATES = ("per hour", "share per hour")
NO_VALUE = "–"


@dataclass(frozen=True)
class StoredDot:
    """One instance in one stratum and bucket; `n` counts matched minutes, or calls of a share."""

    instance: str
    arm: str
    stratum: str
    bucket: str
    value: float
    n: int


@dataclass(frozen=True)
class Change:
    """One metric of one region, frozen in a verdict. `change`, `low` and `high` are relative
    changes of the metric itself: 0.05 is 5% more.

    `baseline_at_most` and `candidate_at_most`: the value is only the end of an engine's first
    bucket. `minutes` is the window of both values, None if the row does not state it; `newest`: the
    window is the newest minutes instead of those in which both versions ran. `excluded` counts the
    events of instances that had just started, for baseline and candidate.
    """

    metric: str
    region: str = ""
    unit: str = ""
    label: str = NO_ANSWER
    reason: str = ""
    judged: bool = True
    drives: bool = False
    hard: bool = True
    muted: bool = False
    baseline: float | None = None
    candidate: float | None = None
    baseline_at_most: bool = False
    candidate_at_most: bool = False
    change: float | None = None
    low: float | None = None
    high: float | None = None
    minutes: int | None = None
    newest: bool = False
    baseline_instances: int | None = None
    candidate_instances: int | None = None
    affected_instances: int | None = None
    affected_share: float | None = None
    excluded: tuple[int, int] | None = None
    baseline_counts: tuple[int, int] | None = None
    candidate_counts: tuple[int, int] | None = None
    """Events and calls behind a share of calls; None if the row does not state them."""
    causes: Mapping[str, int] = field(default_factory=dict)
    less_is_worse: bool = False
    matched_minutes: int | None = None
    since: int | None = None
    onset: tuple[int, int] | None = None
    """The minutes between which the change began, both included; None if unknown."""
    from_start: bool = False
    """The change was there in the first compared minute, which is `since`."""
    smallest_effect: float | None = None
    times: float | None = None
    points: float | None = None
    strata: int = 0
    strata_agreeing: int | None = None
    explained_by: str = ""

    @property
    def named(self) -> MetricEntry:
        """Name of the metric."""
        return find_metric(self.metric)

    @property
    def regressed(self) -> bool:
        """True if the metric is worse by more than the smallest effect."""
        return self.label == REGRESSED

    @property
    def bounded(self) -> bool:
        """True if one of the values, and thus the change, is only a bound."""
        return self.baseline_at_most or self.candidate_at_most

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline, for units whose change is not relative: shares and rates."""
        if self.unit not in ("share", *RATES) or self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline

    @property
    def baseline_said(self) -> str:
        """19.3 ms, < 300 ms."""
        return _value(self.baseline, self.unit, at_most=self.baseline_at_most)

    @property
    def candidate_said(self) -> str:
        """25.3 ms."""
        return _value(self.candidate, self.unit, at_most=self.candidate_at_most)

    @property
    def baseline_counted(self) -> str:
        """0 of 210 (0%): the share with its counts, if the row states them."""
        return self._count(self.baseline_counts, self.baseline) or self.baseline_said

    @property
    def candidate_counted(self) -> str:
        """1 of 88 calls (1.1%); without counts 1.1% of calls."""
        noun = self.named.share_of or "calls"
        counted = self._count(self.candidate_counts, self.candidate, noun)
        return counted or f"{self.candidate_said} of {noun}"

    def _count(self, counts: tuple[int, int] | None, share: float | None, noun: str = "") -> str:
        return numbers.count_share(*counts, share, noun) if counts and share is not None else ""

    @property
    def change_said(self) -> str:
        """`+31%`, `−28.1 pts`, `at least 6.7 times`: computed from the two values; a dash if
        neither value nor change is known."""
        if self.baseline_at_most and self.candidate_at_most:
            return NO_VALUE
        if self.baseline is not None and self.candidate is not None:
            said = numbers.difference(self.candidate, self.baseline, self.unit)
        else:
            said = numbers.change(self.change) if self.change is not None else ""
        return f"{'at least ' if said and self.bounded else ''}{said}" or NO_VALUE

    @property
    def log_interval(self) -> tuple[float, float, float] | None:
        """The change and its interval as logarithms of the ratio, positive is worse; None without
        them."""
        if self.change is None or self.low is None or self.high is None:
            return None
        if min(self.change, self.low, self.high) <= -1:
            return None
        centre, low, high = (math.log1p(one) for one in (self.change, self.low, self.high))
        return (-centre, -high, -low) if self.less_is_worse else (centre, low, high)

    @property
    def range_said(self) -> str:
        """`13% to 52%`: the interval of a relative change; for a share, in multiples of the
        baseline; empty without an interval."""
        if self.low is None or self.high is None or self.bounded:
            return ""
        if self.unit == "share":
            return f"{numbers.number(1 + self.low)} to {numbers.number(1 + self.high)}{SPACE}times"
        return numbers.change_range(self.low, self.high, self.change) + (
            "/h" if self.unit in RATES else ""
        )

    @property
    def affected_said(self) -> str:
        """6 of 6 instances: the affected instances of the candidate; empty if not counted."""
        if self.affected_instances is None or not self.candidate_instances:
            return ""
        plural = "" if self.candidate_instances == 1 else "s"
        return f"{self.affected_instances} of {self.candidate_instances}{SPACE}instance{plural}"

    @property
    def causes_said(self) -> str:
        """Causes of eager calls, or of recompiles."""
        return format_causes(self.causes)

    @property
    def effect_said(self) -> str:
        """The smallest change that matters, such as `threshold 5%`."""
        effect = self.smallest_effect
        if effect is None:
            return ""
        if self.unit == "share":
            if None not in (self.times, self.points, self.change):
                points = numbers.points(self.points or 0.0)
                return f"threshold {numbers.number(self.times or 0.0)} times and {points}"
            of = "compile seconds" if self.metric == "cache" else "an instance’s calls"
            return f"threshold {numbers.percent(effect)} of {of}"
        if self.unit == "per hour":
            return f"threshold {numbers.number(effect)} per hour and instance"
        return f"threshold {numbers.percent(effect)}"

    @property
    def window(self) -> str:
        """matched: minutes in which both versions ran; last: the newest minutes; start: once per
        instance; empty: not known."""
        if self.metric in STARTS:
            return "start"
        return "" if self.minutes is None else "last" if self.newest else "matched"

    @property
    def window_said(self) -> str:
        """The time that both values cover: matched 57 min, last 15 min, at start; empty if the row
        does not state it."""
        if self.window == "start":
            return "at start"
        return f"{self.window} {numbers.number(self.minutes or 0)}{SPACE}min" if self.window else ""

    @property
    def excluded_said(self) -> str:
        """Excluded, first 20 min of an instance: 3 and 21; empty if nothing is excluded."""
        if not self.excluded or not any(self.excluded):
            return ""
        before, after = (numbers.number(count) for count in self.excluded)
        return f"excluded (just started): {before} vs {after}"


@dataclass(frozen=True)
class StoredFact:
    """One confirmed fact: its kind, the candidate's instances that show it, and what the baseline
    shows."""

    kind: str
    severity: str = ""
    about: str = ""
    why: str = ""
    count: int = 1
    since: int | None = None
    instances: tuple[str, ...] | None = None
    on_baseline: int = 0
    passed_on_baseline: int = 0
    baseline_silent: bool = False

    @property
    def news(self) -> bool:
        """True if the baseline does not show the fact."""
        return self.severity in ALERTING_VERDICTS


@dataclass(frozen=True)
class StoredDrift:
    """A version that is slower than on its first day."""

    metric: str
    region: str
    change: float
    since: int | None = None
    instances: int | None = None


@dataclass(frozen=True)
class StoredHeldBy:
    """The metric that holds back HEALTHY. Numbers are relative changes of the metric itself."""

    metric: str
    region: str
    change: float | None
    low: float | None
    high: float | None
    visible_90: float | None
    helps: str


@dataclass(frozen=True)
class StoredStep:
    """The next step that a verdict advises."""

    kind: str
    arm: str
    stratum: str
    count: int
    visible: float | None
    minutes: int


@dataclass(frozen=True)
class ExcludedCalls:
    """Calls, or a metric, without a counterpart; `share` is of all calls."""

    what: str
    reason: str
    share: float | None


@dataclass(frozen=True)
class StoredMixShift:
    """The effect of a different mix of shapes alone on a level."""

    region: str
    metric: str
    change: float


@dataclass(frozen=True)
class EnvironmentChange:
    """One key whose values differ, with the number of instances per value."""

    key: str
    baseline: tuple[tuple[str, int], ...]
    candidate: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """How the versions were compared, and the share of compared calls; None if a row does not state
    it."""

    reason: str
    bound: float | None
    layouts: tuple[str, ...]
    compared_minutes: int
    comparable_share: float | None
    adoption: float | None
    low_adoption: bool
    runs_ended: bool = False
    """True if runs were compared and no run of the version continues."""


@dataclass(frozen=True)
class StoredRun:
    """A compared run of a short job; its first `excluded_minutes` are warm-up."""

    unit: str
    arm: str
    excluded_minutes: int
    minutes: int


@dataclass(frozen=True)
class ArmExclusion:
    """Instance-minutes and calls of one version since the deployment, and how many of them warm-up
    excludes."""

    excluded_minutes: int
    excluded_calls: int
    minutes: int

    @property
    def said(self) -> str:
        """84 instance-minutes and 1,240 calls."""
        minutes = numbers.plural(self.excluded_minutes, "instance-minute")
        return f"{minutes} and {numbers.plural(self.excluded_calls, 'call')}"

    @property
    def share_said(self) -> str:
        """12%: the share of its instance-minutes; empty without a minute."""
        return numbers.percent(self.excluded_minutes / self.minutes) if self.minutes else ""


@dataclass(frozen=True)
class StoredWarmUp:
    """The warm-up of a verdict: the first `minutes` of every process are excluded."""

    minutes: int
    source: str
    processes: int
    baseline: ArmExclusion
    candidate: ArmExclusion

    @property
    def source_said(self) -> str:
        """`learned from 34 processes`; empty for the default."""
        if self.source == "learned":
            return f"learned from {numbers.plural(self.processes, 'process', 'processes')}"
        return "set in the settings" if self.source == "set" else ""


def _value(value: float | None, unit: str, *, at_most: bool) -> str:
    if value is None:
        return NO_VALUE
    return numbers.bound(value) if at_most and unit == "s" else numbers.level(value, unit)
