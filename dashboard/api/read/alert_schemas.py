"""Schemas of alerts in the answers of the read API."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema
from pydantic import Field

from dashboard.api.read.schemas import Answer, Page


class AlertShape(Schema):
    number: int = Field(description="Number within the project: 418 is A-418.")
    state: str
    severity: str = Field(description="Current severity of the alert: roll_back or watch.")
    worst: str
    cause: str
    title: str
    model_id: int | None = Field(
        description="Null, like the next four fields, if the alert concerns the whole fleet: "
        "cause fleet_silence."
    )
    model: str | None
    version_id: int | None
    version: str | None
    environment: str | None
    opened_at: datetime
    acknowledged_at: datetime | None
    snoozed_until: datetime | None
    resolved_at: datetime | None
    outcome: str
    owner: str | None
    group_id: int | None = Field(
        description="The same for alerts that opened together and share a host, region or other "
        "property."
    )
    group: str | None = Field(description="The shared properties, in words.")
    link: str


class AlertEventShape(Schema):
    at: datetime
    kind: str
    text: str
    actor: str
    verdict_id: int | None


class OneAlert(Answer, AlertShape):
    events: list[AlertEventShape] = Field(description="Newest first, at most 200.")


class Alerts(Page):
    items: list[AlertShape]
