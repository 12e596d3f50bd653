"""Results of the judge: a verdict with its evidence. Every value has a JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dashboard.regressions.judge.certain_facts import CertainFact, ObservedFact
from dashboard.regressions.judge.environment_diff import Difference
from dashboard.regressions.judge.inputs import Layout
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.verdict_policy import LostHealthy, Verdict
from dashboard.regressions.judge.young_minutes import WarmUp

Label = Literal["REGRESSED", "IMPROVED", "NO CHANGE", "NOT ENOUGH DATA"]
Reason = Literal[
    "",
    "no_candidate",
    "silent",
    "warming_up",
    "mostly_warm_up",
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
    "too_few_runs",
    "run_in_progress",
    "run_too_short",
]

NotComparedReason = Literal[
    "no_baseline_in_stratum",
    "no_baseline_in_bucket",
    "no_run_in_bucket",
    "too_few_calls",
    "one_sided",
    "after_the_baseline_ended",
    "no_baseline_on_host",
    "past_too_short",
    "agents_differ",
]
Rule = Literal["", "affected", "rate"]
Help = Literal["time", "calls", "instances"]
StepKind = Literal[
    "add_instances", "run_side_by_side", "add_traffic", "wait", "swap_hosts", "add_runs"
]


@dataclass(frozen=True, slots=True)
class Dot:
    """One instance in one stratum and bucket. `n` is matched minutes for a level, calls for a
    share."""

    instance: str
    arm: str
    stratum: str
    bucket: str
    value: float
    n: int


def sort_dots(dots: list[Dot]) -> tuple[Dot, ...]:
    """Baseline first, then by stratum, instance and bucket."""
    return tuple(sorted(dots, key=lambda dot: (dot.arm, dot.stratum, dot.instance, dot.bucket)))


@dataclass(frozen=True, slots=True)
class StratumChange:
    """The change within one stratum; its interval has the same confidence as that of the row."""

    stratum: str
    change: float
    baseline_instances: int
    candidate_instances: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One metric of one region. Changes are ratios minus 1; positive is worse, and None means
    nothing to compare.

    - `candidate` is the baseline's value times the matched change, so it excludes differences in
      the mix of shapes or machines.
    - `bound` is the largest change that the data does not rule out with 95% confidence.
    - A row that is not `judged` is only shown; a `muted` row is not judged because of an operator's
      setting.
    - `explained_by` names the metric of the same region that explains this change: cause and effect
      count once.
    - `rule` is the rule that made a count REGRESSED: affected instances, or the rate compared with
      the baseline's. A rate matters from `times` the baseline's rate and `points` of all calls
      more.
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
    """Number of instances without a dot, because there are too many. Drawn instances are spread
    evenly over all."""
    alone: bool = False
    """One of several instances accounts for nearly all of the change: no reason for a rollback."""
    baseline_at_most: bool = False
    candidate_at_most: bool = False
    """The level lies in an engine's first bucket: the value is the end of the bucket, and the
    change is a bound, too."""
    window_minutes: int = 0
    """Number of last minutes that both values cover; 0 means all matched minutes since the
    deployment."""
    excluded_baseline: int | None = None
    excluded_candidate: int | None = None
    """Events of instances that had just started, which a count excludes; None if nothing is
    excluded."""
    baseline_events: int | None = None
    baseline_calls: int | None = None
    candidate_events: int | None = None
    candidate_calls: int | None = None
    """The counts behind a share of calls; None for other metrics. The baseline's share of a rate is
    weighted by the candidate's strata, so it can differ from the quotient of its counts."""
    cohort: tuple[str, str] | None = None
    """The kind and the name of the only cohort that the change is of: a GPU type, mode, runtime,
    world size, shape bucket or stratum."""
    cohort_changes: tuple[tuple[str, str, float], ...] = ()
    """Kind, name and change of the cohorts that disagree, in one dimension, largest first."""
    outlier: str = ""
    outlier_change: float | None = None
    """The one of several instances that is far slower than the baseline, and its change."""
    odd_instance: str = ""
    odd_host: str = ""
    """That instance, the one that accounts for nearly all of the change, or the only one, with its
    host; empty if unknown."""
    strata_differ: bool = False
    """The changes of the strata differ by more than their errors, or only some of them matter."""
    onset: tuple[int, int] | None = None
    """The minutes between which the change began, with 95% confidence; None if unknown. `since` is
    the most likely minute then."""
    from_start: bool = False
    """The change was there in the first compared minute, which is `since`."""

    @property
    def affected_share(self) -> float | None:
        """The share of affected candidate instances; None if none was compared."""
        return (
            self.affected_instances / self.candidate_instances if self.candidate_instances else None
        )


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Calls of the candidate without a counterpart, as a share of all its calls after warm-up.

    The share is None if the row is not about calls; `what` is then a process metric.
    """

    what: str
    why: NotComparedReason
    share: float | None


@dataclass(frozen=True, slots=True)
class BucketShare:
    """The share of a stratum's traffic that each arm has in one shape bucket."""

    stratum: str
    bucket: str
    baseline: float
    candidate: float


@dataclass(frozen=True, slots=True)
class MixShift:
    """The effect of a different mix of shapes on a level. The effect is not part of any reported
    change."""

    region: str
    metric: str
    change: float
    buckets: tuple[BucketShare, ...]


@dataclass(frozen=True, slots=True)
class NextStep:
    """The cheapest step that improves detection. `visible` is the change of the metric itself
    that is detected in 90% of cases after the step."""

    kind: StepKind
    arm: str
    stratum: str
    count: int
    visible: float | None
    minutes: int


@dataclass(frozen=True, slots=True)
class HeldBy:
    """The metric that holds back HEALTHY, with the estimate so far as in its row of evidence.

    - `visible_90` is the change that would be detected in 90% of cases with the present data.
    - `helps` is the cheapest kind of data that leads to a verdict.
    - Numbers are None while nothing of the metric can be compared.
    """

    metric: str
    region: str
    change: float | None
    low: float | None
    high: float | None
    visible_90: float | None
    helps: Help


@dataclass(frozen=True, slots=True)
class Confidence:
    """Intended confidence of the labels. It holds at every evaluation under the assumptions of
    `error_budget`, which fleets do not always meet."""

    roll_back_alpha: float
    watch_alpha: float
    comparisons: int
    provably_anytime_valid: bool = False


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """Inputs in addition to minutes: confirmed facts of instances, and differences between the
    versions' environments."""

    facts: tuple[ObservedFact, ...] = ()
    environment: tuple[Difference, ...] = ()
    stalled_budget: float = 1.0
    """The share of calls that may wait for a compilation; 1 means no budget."""


EMPTY_CONTEXT = JudgeContext()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A compared run: `excluded_minutes` at its start are warm-up."""

    unit: str
    version: str
    arm: str
    host: str
    first_minute: int
    excluded_minutes: int
    minutes: int


@dataclass(frozen=True, slots=True)
class RunsCompared:
    """The runs of a version that was compared run against run.

    `ended` is True if no run of the version continues; `missing` is the number of runs of earlier
    versions that a comparison still needs.
    """

    runs: tuple[RunSummary, ...]
    versions: tuple[str, ...]
    ended: bool
    same_host: bool
    missing: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict at a minute.

    While HEALTHY, the data rules out any change above `bound`, the largest of `bounds`. The bounds
    are those of the fixed look, `look` minutes after the start.
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
    """Layouts of the comparison, most informative first; empty before a comparison."""
    adoption: float | None
    """The candidate's share of both versions' calls over the last hour; None without a call."""
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
    """Regions with too few calls to be part of HEALTHY's bound."""
    ended: tuple[tuple[str, int], ...] = ()
    """Regions without current calls on which a ROLL BACK rested, each with the minute of its last
    call."""
    drift: tuple[SelfDrift, ...] = ()
    """Drifts of the version from its own first day."""
    lost_healthy: LostHealthy | None = None
    """The check that ended the last HEALTHY, while no later one is passed."""
    held_by: HeldBy | None = None
    """The metric that holds back HEALTHY, while the verdict is NOT ENOUGH DATA."""
    warm_up: WarmUp | None = None
    """The warm-up, and the minutes and calls of both arms that it excludes."""
    runs: RunsCompared | None = None
    """The compared runs; None if the versions are not short jobs."""

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON types."""
        found = asdict(self)
        for row, evidence in zip(found["evidence"], self.evidence, strict=True):
            row["affected_share"] = evidence.affected_share
        return found
