"""Schemas of the read API's answers, each field with its unit.

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
    Path(max_length=64, description="The project's short name, as in the addresses of its pages."),
]
Id = Annotated[int, Path(ge=1, le=MAX_ID)]


class Answer(Schema):
    """Base of every answer."""

    cw: Annotated[int, Field(description="The version of the API.")] = 1


class Page(Answer):
    """Base of every list."""

    next: str | None = Field(
        description="The cursor of the items that follow; null where there are no more."
    )


class Quota(Schema):
    reports_per_second: float = Field(
        description="To each web process; above it agents receive 429 and wait."
    )
    reports_waiting: int = Field(
        description="Reports that may wait to be folded; above it agents receive 429 and wait."
    )


class ProjectShape(Schema):
    slug: str
    name: str
    quota: Quota = Field(description="The values in force, whether set or default.")


class Projects(Answer):
    items: list[ProjectShape]


class ModelShape(Schema):
    id: int
    name: str
    first_seen_at: datetime
    last_seen_at: datetime
    simulated: bool = Field(description="Its reports come from the simulator.")
    cold_start_budget_seconds: float | None = Field(
        description="The budget in force; null where neither model nor project has one."
    )
    served_budget_share: float | None = Field(
        None, description="The share of calls that has to run compiled; 1 is all."
    )
    stalled_budget_share: float | None = Field(
        None, description="The share of calls that may wait for a compilation; 1 is all."
    )
    budgets_from: dict[str, str] = Field(
        {},
        description="Where each budget in force was set, by its name: model, project or default; a "
        "budget that is not set has no entry.",
    )


class OneModel(Answer, ModelShape):
    environments: list[str] = Field(description="Where its newest 60 deployments ran.")


class Models(Page):
    items: list[ModelShape]


class WhyEagerShape(Schema):
    """Calls by execution mode. The agent sampled only compiled, partial and eager calls."""

    compiled: int
    partial: int = Field(description="A part of the call ran eager.")
    unknown: int = Field(description="No agent looked at them; they are in no share.")
    eager_by: dict[str, int] = Field(
        description="Eager calls by cause: limit, stance, skip, disabled, error, no_graph."
    )


BELOW_BOUND_TEXT = "it lies below this, the end of the first bucket in which the engine counts."


class Figures(Schema):
    """Metrics over the span next to them. Null: not reported, which is not zero."""

    calls: int | None = None
    instances: int | None = Field(None, description="The most that reported in one minute.")
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    p50_below_seconds: float | None = Field(
        None, description=f"Where p50_seconds is null: {BELOW_BOUND_TEXT}"
    )
    p95_below_seconds: float | None = Field(
        None, description=f"Where p95_seconds is null: {BELOW_BOUND_TEXT}"
    )
    p99_below_seconds: float | None = Field(
        None, description=f"Where p99_seconds is null: {BELOW_BOUND_TEXT}"
    )
    mean_seconds: float | None = Field(
        None, description="Of all calls; where a quantile is only known to be below a bound."
    )
    throughput_items_per_second: float | None = Field(
        None,
        description="Of call time, where the job says how many items "
        "a call has; of an engine without "
        "an agent, of wall time.",
    )
    calls_per_second_per_instance: float | None = None
    eager_share: float | None = Field(
        None, description="Of the calls that were looked at; 1 is all."
    )
    stalled_share: float | None = Field(
        None,
        description="Calls that waited for a compilation after warm-up, of all calls; 1 is all.",
    )
    stalled_time_share: float | None = Field(
        None, description="The time of such calls, of the time of all calls; 1 is all."
    )
    warm_up_calls: int | None = Field(
        None, description="Calls before warm-up ended: in no quantile."
    )
    with_stalled_calls: bool | None = Field(
        None,
        description="Whether p50, p95 and p99 contain stalled calls; "
        "false for GPU time and where an "
        "agent does not report them.",
    )
    why_eager: WhyEagerShape | None = None
    recompiles_per_hour_per_instance: float | None = None
    error_share: float | None = Field(None, description="Of all calls; 1 is all.")
    compile_seconds_per_instance: float | None = None
    cache_hit_share: float | None = Field(None, description="Of compile seconds; 1 is all.")
    gpu_memory_bytes: int | None = Field(None, description="The peak of the highest instance.")
    host_memory_bytes: int | None = Field(None, description="Of the highest instance.")


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
    data_until: datetime = Field(description="The last minute of data in it.")
    since: datetime | None = Field(description="Since when what it says holds.")
    created_at: datetime
    current: bool = Field(description="Whether it is the verdict that stands now.")
    last_known_at: datetime | None = Field(
        description="Where an open alert keeps this verdict: when it "
        "was last known to hold; else null."
    )
    open_alert: int | None = Field(
        description="The number of the alert that keeps this verdict; null where none does."
    )
    evaluated_now: str = Field(
        description="The kind that the data gives now; differs from "
        "`kind` where an open alert keeps "
        "the verdict."
    )


class EvidenceShape(Schema):
    """One metric of one region. `change` is a ratio minus 1: 0.05 is 5% more. `low` and `high`
    bound the change."""

    metric: str
    name: str
    region: str
    unit: str = Field(description="Of baseline and candidate: s, share, bytes, per hour, ...")
    baseline: float | None
    candidate: float | None
    change: float | None
    low: float | None
    high: float | None
    instances_baseline: int | None
    instances_candidate: int | None
    affected_instances: int | None
    drives: bool = Field(description="Whether the verdict rests on it.")
    causes: dict[str, int] = Field({}, description="Of eager calls: how many by cause.")
    minutes: int | None = Field(
        None,
        description="The window of baseline and candidate, in matched "
        "or last minutes; null: not known.",
    )
    window: str = Field(
        "", description="matched, last or start: which minutes those are; empty: not known."
    )
    baseline_at_most: bool = Field(
        False,
        description="The baseline is only known to be below its value, and the change is a bound.",
    )
    candidate_at_most: bool = Field(False, description="The same of the candidate.")
    text: str


class OneVerdict(Answer, VerdictShape):
    evidence: list[EvidenceShape]


class Verdicts(Page):
    items: list[VerdictShape]


class DeploymentShape(Schema):
    environment: str
    started_at: datetime
    last_data_at: datetime
    ended_at: datetime | None = Field(description="Null while it runs.")


class VersionShape(Schema):
    id: int
    name: str
    first_seen_at: datetime
    last_seen_at: datetime
    deployments: list[DeploymentShape] = Field(description="In this environment, the newest first.")
    verdict: VerdictShape | None = Field(
        description="What is said now about its newest deployment."
    )
    span: SpanShape | None = Field(
        description="What the figures are of: the last minutes in which it ran."
    )
    region: str
    figures: Figures


class Versions(Answer):
    environment: str
    clock: str = Field(
        description="Whether quantiles are of gpu or wall time; one answer never mixes the two."
    )
    items: list[VersionShape] = Field(description="In order of deployment, the newest first.")


class NamedVersion(Schema):
    id: int
    name: str


class SeriesShape(Schema):
    metric: str
    unit: str
    version_id: int
    values: list[float | None] = Field(
        description="One a bin; null where nothing was reported, or only a bound is known."
    )
    below_seconds: list[float | None] | None = Field(
        None,
        description="One a bin, where a quantile has no value in one "
        f"of them: {BELOW_BOUND_TEXT} Null "
        "where there is no such bin.",
    )
    mean_seconds: list[float | None] | None = Field(None, description="Of all calls of these bins.")


class Series(Answer):
    environment: str
    region: str
    regions: list[str] = Field(description="Every region there is, the busiest first.")
    clock: str = Field(description="Whether quantiles are of gpu or wall time.")
    span: SpanShape
    step_seconds: int
    versions: list[NamedVersion]
    times: list[datetime] = Field(description="The beginning of each bin.")
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
    verdict: VerdictShape | None = Field(description="The newest of exactly this pair.")
    judged_the_other_way_round: bool
    evidence: list[EvidenceShape]
