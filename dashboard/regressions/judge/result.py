"""What the judge hands back: a verdict with the evidence it rests on, all of it JSON-able."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dashboard.regressions.judge.certain_facts import CertainFact, ObservedFact
from dashboard.regressions.judge.environment_diff import Difference
from dashboard.regressions.judge.inputs import Layout
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.verdict_policy import Verdict

Label = Literal["REGRESSED", "IMPROVED", "NO CHANGE", "NOT ENOUGH DATA"]
Reason = Literal[
    "",
    "no_candidate",
    "silent",
    "warming_up",
    "no_baseline",
    "one_after_the_other",
    "in_turn",
    "no_common_host",
    "no_common_stratum",
    "no_longer_compared",
    "too_few_calls",
    "one_sided",
    "too_short",
    "too_wide",
    "bucket_too_wide",
    "baseline_affected",
    "not_called",
    "before_look",
    "not_within_bound",
    "muted",
]

NotComparedReason = Literal[
    "no_baseline_in_stratum",
    "no_baseline_in_bucket",
    "too_few_calls",
    "one_sided",
    "after_the_baseline_ended",
    "no_baseline_on_host",
    "past_too_short",
    "agents_differ",
]
Rule = Literal["", "affected", "rate"]


@dataclass(frozen=True, slots=True)
class Dot:
    """One instance in one stratum and bucket; `n` is matched minutes for a level, calls for a
    share."""

    instance: str
    arm: str
    stratum: str
    bucket: str
    value: float
    n: int


@dataclass(frozen=True, slots=True)
class StratumChange:
    """The change within one stratum."""

    stratum: str
    change: float
    baseline_instances: int
    candidate_instances: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One metric of one region. Changes are ratios minus 1, positive is worse, None where there is
    nothing to compare.

    `candidate` is the baseline's value times the matched change, so a different mix of shapes or
    machines is not in it. `bound` is the worst change that the data leaves possible with 95 %. A
    row that is not `judged` is only shown, a `muted` one because an operator said so.
    `explained_by` names the metric of the same region whose change this one follows from: cause and
    effect count once. Of a count `rule` says what made it REGRESSED: its affected instances, or the
    rate beside the baseline's, which matters from so many `times` that and so many `points` of all
    calls more.
    """

    metric: str
    region: str
    unit: str
    label: Label
    reason: Reason
    judged: bool
    hard: bool
    drives: bool
    since: int | None
    baseline: float | None
    candidate: float | None
    change: float | None
    low: float | None
    high: float | None
    bound: float | None
    smallest_effect: float
    smallest_visible: float | None
    tolerated: float | None
    worse: int
    baseline_instances: int
    candidate_instances: int
    affected_instances: int
    matched_minutes: int
    strata_agreeing: int
    strata: tuple[StratumChange, ...]
    layouts: tuple[Layout, ...]
    causes: dict[str, int]
    dots: tuple[Dot, ...]
    muted: bool = False
    explained_by: str = ""
    rule: Rule = ""
    times: float | None = None
    points: float | None = None
    dots_left_out: int = 0
    """Instances that have no dot, for there are too many: those that are drawn are spread evenly
    over all."""
    alone: bool = False
    """One of several instances shows nearly all of the change: no reason to roll back."""
    baseline_at_most: bool = False
    candidate_at_most: bool = False
    """The level lies in an engine's first bucket: the value is the end of the bucket, and the
    change is a bound as well."""
    window_minutes: int = 0
    """Of how many last minutes both values are; 0: of all matched minutes since the deployment."""
    excluded_baseline: int | None = None
    excluded_candidate: int | None = None
    """Events of instances that had just started, which a count leaves out; None where nothing is
    left out."""

    @property
    def affected_share(self) -> float | None:
        """The share of the candidate's instances that show it; None when none was compared."""
        return (
            self.affected_instances / self.candidate_instances if self.candidate_instances else None
        )


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Calls of the candidate that had nothing to stand beside, as a share of all its calls after
    warm-up.

    The share is None where it is not about calls: `what` is then a metric of processes.
    """

    what: str
    why: NotComparedReason
    share: float | None


@dataclass(frozen=True, slots=True)
class BucketShare:
    """How much of a stratum's traffic each arm has in one shape bucket."""

    stratum: str
    bucket: str
    baseline: float
    candidate: float


@dataclass(frozen=True, slots=True)
class MixShift:
    """What a different mix of shapes alone does to a level; it is not part of any change above."""

    region: str
    metric: str
    change: float
    buckets: tuple[BucketShare, ...]


@dataclass(frozen=True, slots=True)
class NextStep:
    """The cheapest thing that lets the judge see more; `visible` is the smallest visible change
    after it."""

    kind: Literal["add_instances", "run_side_by_side", "add_traffic", "wait"]
    arm: str
    stratum: str
    count: int
    visible: float | None
    minutes: int


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a label is meant to be; the intervals are calibrated on simulated fleets, not
    provably valid at every look."""

    roll_back_alpha: float
    watch_alpha: float
    comparisons: int
    provably_anytime_valid: bool = False


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What is known of the instances beside their minutes: certain facts, and how the versions'
    environments differ."""

    facts: tuple[ObservedFact, ...] = ()
    environment: tuple[Difference, ...] = ()
    stalled_budget: float = 1.0
    """The share of calls that may wait for a compilation; 1: no budget."""


EMPTY_CONTEXT = JudgeContext()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict at a minute.

    While HEALTHY, nothing got worse than `bound`, the largest of `bounds`, by the fixed look,
    `look` minutes after the start.
    """

    verdict: Verdict
    since: int
    reason: Reason
    minute: int
    deployed_minute: int
    last_candidate_minute: int | None
    last_baseline_minute: int | None
    compared_minutes: int
    layouts: tuple[Layout, ...]
    """How the versions were compared, the way that tells most first; empty while they were not."""
    adoption: float | None
    """The candidate's share of the calls of both versions over the last hour; None without a
    call."""
    low_adoption: bool
    comparable_share: float | None
    bound: float | None
    bounds: dict[str, float]
    look: int | None
    smallest_visible: float | None
    next_look: int | None
    next_step: NextStep | None
    evidence: tuple[Evidence, ...]
    not_compared: tuple[NotCompared, ...]
    mix_shift: tuple[MixShift, ...]
    confidence: Confidence
    transitions: tuple[tuple[int, Verdict], ...]
    rows_ignored: int = 0
    """Rows of minutes that are not closed yet, by the server's clock."""
    facts: tuple[CertainFact, ...] = ()
    environment: tuple[Difference, ...] = ()
    last_compared_minute: int | None = None
    minor: tuple[str, ...] = ()
    """Regions with too few calls to be in HEALTHY's bound."""
    ended: tuple[tuple[str, int], ...] = ()
    """Regions on which a roll back rested and that are not called any more, with the minute of the
    last call."""
    drift: tuple[SelfDrift, ...] = ()
    """Where the version is slower than it was itself on its first day."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        found = asdict(self)
        for row, evidence in zip(found["evidence"], self.evidence, strict=True):
            row["affected_share"] = evidence.affected_share
        return found
