"""Schemas of alerts in the answers of the read API."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema
from pydantic import Field

from dashboard.api.read.schemas import Answer, Page


class AlertShape(Schema):
    number: int = Field(description="Within the project: 418 is A-418.")
    state: str
    severity: str = Field(description="Current severity of the alert: roll_back or watch.")
    worst: str
    cause: str
    title: str
    model_id: int | None = Field(
        description="This and the next four are null where the alert "
        "is about the whole fleet: cause "
        "fleet_silence."
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
        description="The same for alerts that came together and share what they run on."
    )
    group: str | None = Field(description="What those share, in words.")
    link: str


class AlertEventShape(Schema):
    at: datetime
    kind: str
    text: str
    actor: str
    verdict_id: int | None


class OneAlert(Answer, AlertShape):
    events: list[AlertEventShape] = Field(description="The newest first, at most 200.")


class Alerts(Page):
    items: list[AlertShape]
