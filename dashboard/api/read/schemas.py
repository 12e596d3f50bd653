"""Schemas of the read API's responses, each field with its unit.

Fields are only ever added; unknown values are null.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from ninja import Path, Schema
from pydantic import Field

MAX_ID = 2**53
Slug = Annotated[
    str,
    Path(max_length=64, description="The project's short name, as in the URLs of its pages."),
]
Id = Annotated[int, Path(ge=1, le=MAX_ID)]


class Answer(Schema):
    """Base of every response."""

    cw: Annotated[int, Field(description="Version of the API.")] = 1


class Page(Answer):
    """Base of every list."""

    next: str | None = Field(description="Cursor of the next page; null on the last page.")


class Quota(Schema):
    reports_per_second: float = Field(
        description="Limit per web process; above it, agents receive 429 and wait."
    )
    reports_waiting: int = Field(
        description="Maximum number of queued reports; above it, agents receive 429 and wait."
    )


class ProjectShape(Schema):
    slug: str
    name: str
    quota: Quota = Field(description="The current values, whether set or default.")


class Projects(Answer):
    items: list[ProjectShape]


class ModelShape(Schema):
    id: int
    name: str
    first_seen_at: datetime
    last_seen_at: datetime
    simulated: bool = Field(description="The project's reports come from the simulator.")
    cold_start_budget_seconds: float | None = Field(
        description="The current budget; null if neither model nor project has one."
    )
    served_budget_share: float | None = Field(
        None, description="The share of calls that must run compiled; 1 is all."
    )
    stalled_budget_share: float | None = Field(
        None, description="The share of calls that may wait for a compilation; 1 is all."
    )
    budgets_from: dict[str, str] = Field(
        {},
        description="Where each current budget was set, by budget name: model, project or "
        "default; a budget that is not set has no entry.",
    )


class OneModel(Answer, ModelShape):
    environments: list[str] = Field(
        description="Environments of the model's newest 60 deployments."
    )


class Models(Page):
    items: list[ModelShape]


class WhyEagerShape(Schema):
    """Calls by execution mode. The agent sampled only compiled, partial and eager calls."""

    compiled: int
    partial: int = Field(description="A part of the call ran eager.")
    unknown: int = Field(description="Calls that no agent sampled; excluded from every share.")
    eager_by: dict[str, int] = Field(
        description="Eager calls by cause: limit, stance, skip, disabled, error, no_graph."
    )


BELOW_BOUND_TEXT = "the quantile is below this value, the end of the engine's first bucket."


class Figures(Schema):
    """Metrics over the span next to them. Null: not reported, which is not zero."""

    calls: int | None = None
    instances: int | None = Field(
        None, description="Highest number of instances that reported in one minute."
    )
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    p50_below_seconds: float | None = Field(
        None, description=f"If p50_seconds is null: {BELOW_BOUND_TEXT}"
    )
    p95_below_seconds: float | None = Field(
        None, description=f"If p95_seconds is null: {BELOW_BOUND_TEXT}"
    )
    p99_below_seconds: float | None = Field(
        None, description=f"If p99_seconds is null: {BELOW_BOUND_TEXT}"
    )
    mean_seconds: float | None = Field(
        None, description="Mean of all calls; set if a quantile is only known to be below a bound."
    )
    throughput_items_per_second: float | None = Field(
        None,
        description="Based on call time, if the job reports the number of items per call; for an "
        "engine without an agent, on wall time.",
    )
    calls_per_second_per_instance: float | None = None
    eager_share: float | None = Field(None, description="Share of the sampled calls; 1 is all.")
    stalled_share: float | None = Field(
        None,
        description="Calls that waited for a compilation after warm-up, of all calls; 1 is all.",
    )
    stalled_time_share: float | None = Field(
        None, description="Their share of the time of all calls; 1 is all."
    )
    warm_up_calls: int | None = Field(
        None, description="Calls before warm-up ended; excluded from every quantile."
    )
    with_stalled_calls: bool | None = Field(
        None,
        description="Whether p50, p95 and p99 contain stalled calls; false for GPU time, and if "
        "an agent does not report stalled calls.",
    )
    why_eager: WhyEagerShape | None = None
    recompiles_per_hour_per_instance: float | None = None
    error_share: float | None = Field(None, description="Of all calls; 1 is all.")
    compile_seconds_per_instance: float | None = None
    cache_hit_share: float | None = Field(None, description="Of compile seconds; 1 is all.")
    gpu_memory_bytes: int | None = Field(None, description="Peak of the highest instance.")
    host_memory_bytes: int | None = Field(None, description="Value of the highest instance.")


class SpanShape(Schema):
    first: datetime
    last: datetime = Field(description="Exclusive.")


class VerdictShape(Schema):
    id: int
    model_id: int
    model: str
    version_id: int
    version: str
    environment: str
    kind: str = Field(description="healthy, watch, roll_back or not_enough_data.")
    previous_kind: str
    sentence: str
    cause: str
    baseline_version_id: int | None
    baseline_version: str | None
    data_until: datetime = Field(description="Last minute of data in the verdict.")
    since: datetime | None = Field(
        description="Start of the change, most likely; without a change, time since which this "
        "verdict has been unchanged."
    )
    created_at: datetime
    current: bool = Field(description="Whether this is the current verdict.")
    last_known_at: datetime | None = Field(
        description="If an open alert keeps this verdict: when the verdict was last confirmed; "
        "else null."
    )
    open_alert: int | None = Field(
        description="Number of the alert that keeps this verdict; null if there is none."
    )
    evaluated_now: str = Field(
        description="The verdict that the current data yields; differs from `kind` while an open "
        "alert keeps the verdict."
    )


class EvidenceShape(Schema):
    """One metric of one region. `change` is a ratio minus 1: 0.05 is 5% more. `low` and `high`
    bound the change."""

    metric: str
    name: str
    region: str
    unit: str = Field(description="Unit of baseline and candidate: s, share, bytes, per hour, ...")
    baseline: float | None
    candidate: float | None
    change: float | None
    low: float | None
    high: float | None
    instances_baseline: int | None
    instances_candidate: int | None
    affected_instances: int | None
    drives: bool = Field(description="Whether the verdict is based on this metric.")
    causes: dict[str, int] = Field({}, description="Eager calls by cause.")
    minutes: int | None = Field(
        None,
        description="Span of baseline and candidate, in matched or last minutes; null: not known.",
    )
    window: str = Field(
        "",
        description="Which minutes the span consists of: matched, last or start; empty: not known.",
    )
    baseline_at_most: bool = Field(
        False,
        description="True if the baseline is only known to be below its value, so the change is "
        "a bound.",
    )
    candidate_at_most: bool = Field(False, description="The same for the candidate.")
    text: str


class OnsetShape(Schema):
    earliest: datetime
    latest: datetime


class OneVerdict(Answer, VerdictShape):
    onset: OnsetShape | None = Field(
        description="The times between which the change began, with 95% confidence; null if "
        "unknown, or if the change was there in the first compared minute."
    )
    evidence: list[EvidenceShape]


class Verdicts(Page):
    items: list[VerdictShape]


class DeploymentShape(Schema):
    environment: str
    started_at: datetime
    last_data_at: datetime
    ended_at: datetime | None = Field(description="Null while the deployment is live.")


class VersionShape(Schema):
    id: int
    name: str
    first_seen_at: datetime
    last_seen_at: datetime
    deployments: list[DeploymentShape] = Field(
        description="Deployments in this environment, newest first."
    )
    verdict: VerdictShape | None = Field(description="Current verdict of the newest deployment.")
    span: SpanShape | None = Field(
        description="The span of the metrics: the last minutes in which the version ran."
    )
    region: str
    figures: Figures


class Versions(Answer):
    environment: str
    clock: str = Field(
        description="Whether quantiles are of gpu or wall time; one response never mixes the two."
    )
    items: list[VersionShape] = Field(description="In order of deployment, newest first.")


class NamedVersion(Schema):
    id: int
    name: str


class SeriesShape(Schema):
    metric: str
    unit: str
    version_id: int
    values: list[float | None] = Field(
        description="One value per bin; null if nothing was reported, or only a bound is known."
    )
    below_seconds: list[float | None] | None = Field(
        None,
        description="One value per bin, if a quantile has no value in any of them: "
        f"{BELOW_BOUND_TEXT} Null if there is no such bin.",
    )
    mean_seconds: list[float | None] | None = Field(None, description="Of all calls in these bins.")


class Series(Answer):
    environment: str
    region: str
    regions: list[str] = Field(description="All regions, the busiest first.")
    clock: str = Field(description="Whether quantiles are of gpu or wall time.")
    span: SpanShape
    step_seconds: int
    versions: list[NamedVersion]
    times: list[datetime] = Field(description="Start of each bin.")
    series: list[SeriesShape]


class SideShape(Schema):
    id: int
    name: str
    span: SpanShape
    figures: Figures


class ComparisonAnswer(Answer):
    environment: str
    region: str
    clock: str = Field(description="Whether quantiles are of gpu or wall time.")
    side_by_side: bool = Field(
        description="True: both over the time in which both ran. False: each over its own last day."
    )
    a: SideShape = Field(description="The baseline.")
    b: SideShape = Field(description="The candidate.")
    verdict: VerdictShape | None = Field(description="The newest verdict on exactly this pair.")
    judged_the_other_way_round: bool
    evidence: list[EvidenceShape]
