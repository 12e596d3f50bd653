"""Endpoints of verdicts and alerts."""

from __future__ import annotations

from typing import Literal

from django.db.models import Q
from django.http import Http404
from ninja import Query, Router
from pydantic import Field

from dashboard.alerts.current_verdict import annotate_open_alert, apply_open_alerts
from dashboard.alerts.links import alert_url
from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.alerts.selectors import find_alert, list_alert_events, list_alerts
from dashboard.api.read.alert_schemas import AlertEventShape, Alerts, AlertShape, OneAlert
from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.models_versions import READ_METHODS
from dashboard.api.read.paging import PageQuery, paginate_rows
from dashboard.api.read.schemas import MAX_ID, Id, OneVerdict, Slug, Verdicts
from dashboard.api.read.serializers import evidence_shapes, onset_shape, verdict_shape
from dashboard.projects.selectors import for_project
from dashboard.regressions.models import Verdict

MAX_EVENTS = 200
Kind = Literal["", "healthy", "watch", "roll_back", "not_enough_data"]
router = Router(tags=["Verdicts and alerts"])


class VerdictsQuery(PageQuery):
    model: int | None = Field(None, ge=1, le=MAX_ID)
    version: int | None = Field(None, ge=1, le=MAX_ID)
    environment: str = Field("", max_length=64)
    kind: Kind = ""
    current: bool = Field(
        True,
        description="false: earlier verdicts as well; a row is kept for each change of the "
        "verdict and for each hour.",
    )


class AlertsQuery(PageQuery):
    state: Literal["", "open", "acknowledged", "snoozed", "resolved", "unresolved"] = Field(
        "", description="unresolved: all except resolved."
    )
    severity: Literal["", "watch", "roll_back"] = ""
    model: int | None = Field(None, ge=1, le=MAX_ID)
    environment: str = Field("", max_length=64)


@router.api_operation(
    READ_METHODS, "/projects/{project}/verdicts", response=Verdicts, summary="Verdicts"
)
def verdicts_list(request: ReadRequest, project: Slug, asked: Query[VerdictsQuery]) -> Verdicts:
    """Lists the current verdict of each deployment, newest first, without evidence.

    An open alert keeps the last bad verdict.
    """
    wanted = {
        "deployment__model_id": asked.model,
        "deployment__version_id": asked.version,
        "deployment__environment": asked.environment,
        "kind_standing" if asked.current else "kind": asked.kind,
        "current": asked.current or None,
    }
    rows = annotate_open_alert(for_project(Verdict, request.auth.project(project)).all())
    rows = rows.filter(**{name: value for name, value in wanted.items() if value})
    rows = rows.select_related(
        "deployment__version", "deployment__model", "baseline__version"
    ).defer("evidence")
    found, after = paginate_rows(rows, asked)
    return Verdicts(
        items=[
            verdict_shape(row) for row in (apply_open_alerts(found) if asked.current else found)
        ],
        next=after,
    )


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/verdicts/{verdict_id}",
    response=OneVerdict,
    summary="One verdict with its evidence",
)
def verdict_one(request: ReadRequest, project: Slug, verdict_id: Id) -> OneVerdict:
    """Returns one verdict with its evidence at that time, strongest first."""
    rows = for_project(Verdict, request.auth.project(project)).filter(pk=verdict_id)
    row = rows.select_related(
        "deployment__version", "deployment__model", "baseline__version"
    ).first()
    if row is None:
        raise Http404("Verdict not found in this project.")
    return OneVerdict(
        **verdict_shape(row).dict(),
        onset=onset_shape(row),
        evidence=evidence_shapes(row.evidence),
    )


@router.api_operation(READ_METHODS, "/projects/{project}/alerts", response=Alerts, summary="Alerts")
def alerts_list(request: ReadRequest, project: Slug, asked: Query[AlertsQuery]) -> Alerts:
    """Lists alerts, newest first."""
    rows = list_alerts(project=request.auth.project(project))
    if asked.state:
        unresolved = ~Q(state=AlertState.RESOLVED)
        rows = rows.filter(unresolved if asked.state == "unresolved" else Q(state=asked.state))
    wanted = {
        "severity": asked.severity,
        "deployment__model_id": asked.model,
        "deployment__environment": asked.environment,
    }
    if asked.model or asked.environment:
        rows = rows.exclude(cause=AlertCause.FLEET_SILENCE)
    found, after = paginate_rows(
        rows.filter(**{name: value for name, value in wanted.items() if value}), asked, by="number"
    )
    return Alerts(items=[_alert(row) for row in found], next=after)


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/alerts/{number}",
    response=OneAlert,
    summary="One alert with its timeline",
)
def alert_one(request: ReadRequest, project: Slug, number: Id) -> OneAlert:
    """Returns one alert by its number within the project."""
    found = (
        find_alert(project=request.auth.project(project), number=number)
        if number < 1 << 31
        else None
    )
    if found is None:
        raise Http404("Alert not found in this project.")
    events = [
        AlertEventShape(
            at=event.at,
            kind=event.kind,
            text=event.text,
            actor=event.actor_name,
            verdict_id=event.verdict_id,
        )
        for event in list_alert_events(alert=found)[:MAX_EVENTS]
    ]
    return OneAlert(**_alert(found).dict(), events=events)


def _alert(row: Alert) -> AlertShape:
    of = None if row.cause == AlertCause.FLEET_SILENCE else row.deployment
    return AlertShape(
        number=row.number,
        state=row.state,
        severity=row.severity,
        worst=row.worst,
        cause=row.cause,
        title=row.title,
        model_id=of.model_id if of else None,
        model=of.model.name if of else None,
        version_id=of.version_id if of else None,
        version=of.version.name if of else None,
        environment=of.environment if of else None,
        opened_at=row.opened_at,
        acknowledged_at=row.acknowledged_at,
        snoozed_until=row.snoozed_until,
        resolved_at=row.resolved_at,
        outcome=row.outcome,
        owner=row.owner.get_username() if row.owner else None,
        group_id=row.group_id,
        group=row.group.title if row.group else None,
        link=alert_url(project=row.project.slug, number=row.number),
    )
