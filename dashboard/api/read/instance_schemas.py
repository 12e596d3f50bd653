"""Schemas of findings and instances in the answers of the read API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from dashboard.api.read.schemas import Page


class SeenShape(Schema):
    version_id: int
    count: int
    instances: int
    first_seen_at: datetime
    last_seen_at: datetime
    seconds: float = Field(description="What it cost together, where that is known; else 0.")


class FindingShape(Schema):
    id: int
    kind: str
    text: str
    where: str
    state: str | None = Field(description="new, ongoing, gone or back; null until it was read off.")
    state_since: datetime | None
    certain: bool = Field(description="A fact that needs no statistics.")
    first_version: str | None
    last_version: str | None
    values: list[str] = Field(
        [], description="Of a guard: values, classes or names that it met, eight at most."
    )
    distinct: int = Field(
        0,
        description="How many different ones one process met at most; 0: the finding is not about "
        "values.",
    )
    pattern: str = Field(
        "", description="one value, alternates, distinct values, grows by one, or empty: not known."
    )
    versions: list[SeenShape]


class Findings(Page):
    environment: str
    items: list[FindingShape]


class InstanceShape(Schema):
    id: int
    instance_id: str
    model_id: int
    version_id: int
    version: str
    environment: str
    kind: str
    label: str = Field(description="What its operator calls it; empty where it has no label.")
    name: str = Field(
        description="How the pages call it: its label, else host, rank and process id, with a role "
        "other than worker."
    )
    role: str = Field(
        description="worker, parent, data worker, engine or "
        "auxiliary; empty: not reported, and taken "
        "for a worker."
    )
    host: str
    pid: int | None
    job: str
    rank: int
    world_size: int
    gpu: str
    torch: str
    agent: str
    state: str = Field(
        description="starting, warming, healthy, degraded, eager, "
        "compiling, hung, silent, blind or "
        "ended, as of now."
    )
    counted: bool = Field(
        description="Whether it counts as an instance: from its first "
        "call or compilation on; a parent "
        "or data worker never."
    )
    ended_at: datetime | None = Field(
        description="When its last report said that it ends; null where it reported later."
    )
    exit_code: int | None = Field(
        description="Null where it has not ended, or the code is not known."
    )
    exit_signal: str = Field(description="The signal that ended it, such as SIGTERM; empty: none.")
    blind_to: list[str] = Field(description="Essential facts that it cannot report.")
    capabilities: dict[str, Any] = Field(
        description="What it can tell: yes, partly or no, with a reason."
    )
    started_at: datetime
    ready_at: datetime | None
    last_seen_at: datetime
    cold_start_seconds: float | None
    compiling_for_seconds: float
    eager_share: float = Field(
        description="Of the calls that were looked at in its newest "
        "window; 0 where they were too few."
    )
    latched_frames: int = Field(description="Frames that run eager until it restarts.")
    clock_offset_seconds: float = Field(description="Server minus agent.")
    merged_windows: int
    truncated_events: int
    spool_errors: int
    internal_errors: int
    rejected_windows: int
    simulated: bool


class Instances(Page):
    items: list[InstanceShape]
