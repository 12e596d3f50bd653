"""Schemas of findings and instances in the responses of the read API."""

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
    seconds: float = Field(description="Total cost, if known; else 0.")


class FindingShape(Schema):
    id: int
    kind: str
    text: str
    where: str
    state: str | None = Field(description="new, ongoing, gone or back; null until computed.")
    state_since: datetime | None
    certain: bool = Field(description="A fact that needs no statistics.")
    first_version: str | None
    last_version: str | None
    values: list[str] = Field(
        [], description="For a guard: up to eight values, classes or names that failed it."
    )
    distinct: int = Field(
        0,
        description="Highest number of different values in one process; 0: the finding is not "
        "about values.",
    )
    pattern: str = Field(
        "", description="one value, alternates, distinct values, grows by one; empty: not known."
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
    label: str = Field(description="The operator's label; empty if there is none.")
    name: str = Field(
        description="The name on the pages: the label, else host, rank and process id, with a "
        "role other than worker."
    )
    role: str = Field(
        description="worker, parent, data worker, engine or auxiliary; empty: not reported, and "
        "treated as a worker."
    )
    host: str
    node: str = Field(
        description="The machine under the host, from COMPILEWATCH_NODE; empty: the host itself."
    )
    pid: int | None
    job: str
    rank: int
    world_size: int
    gpu: str
    torch: str
    agent: str
    state: str = Field(
        description="starting, warming, healthy, degraded, eager, compiling, hung, silent, blind "
        "or ended, at this time."
    )
    counted: bool = Field(
        description="Whether the process counts as an instance: from its first call or "
        "compilation on; a parent or data worker never counts."
    )
    ended_at: datetime | None = Field(
        description="Time of the last report, if that report announced the end; null if the "
        "process reported later."
    )
    exit_code: int | None = Field(
        description="Null if the process has not ended or the code is unknown."
    )
    exit_signal: str = Field(
        description="The signal that ended the process, such as SIGTERM; empty: none."
    )
    blind_to: list[str] = Field(description="Essential facts that the process cannot report.")
    capabilities: dict[str, Any] = Field(
        description="The facts that the process can report: yes, partly or no, with a reason."
    )
    started_at: datetime
    ready_at: datetime | None
    last_seen_at: datetime
    cold_start_seconds: float | None
    compiling_for_seconds: float
    eager_share: float = Field(
        description="Share of the sampled calls in the newest report interval; 0 if there were "
        "too few."
    )
    latched_frames: int = Field(description="Frames that run eager until the process restarts.")
    clock_offset_seconds: float = Field(description="Server clock minus agent clock.")
    merged_windows: int
    truncated_events: int
    spool_errors: int
    internal_errors: int
    rejected_windows: int
    simulated: bool


class Instances(Page):
    items: list[InstanceShape]
