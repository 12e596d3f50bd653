"""Tables of the Alerts and Alert quality pages as JSON and CSV, at the URLs of the pages with a
file extension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.alerts.alert_quality import PERIOD_DAYS, read_alert_quality
from dashboard.alerts.deployment_quality import read_deployment_quality
from dashboard.alerts.models import Alert, AlertCause
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.alerts.deployment_quality import DeploymentQualityRow, build_deployment_rows
from dashboard.ui.pages.alerts.filters import AlertFilter
from dashboard.ui.pages.alerts.list_queries import list_alerts
from dashboard.ui.pages.alerts.quality import build_outcome_rows, build_verdict_rows

ALERTS = (
    "number",
    "title",
    "state",
    "severity",
    "model",
    "version",
    "environment",
    "opened_at",
    "resolved_at",
    "outcome",
    "owner",
    "group",
)


@require_safe
@project_page()
def alerts_json(request: ProjectRequest) -> HttpResponse:
    """Alerts with the filters of the page, open ones first."""
    return mark_uncached(JsonResponse({"alerts": [_alert(row) for row in _alerts(request)]}))


@require_safe
@project_page()
def alerts_csv(request: ProjectRequest) -> HttpResponse:
    """The alerts as a table."""
    return _csv(request, "alerts", ALERTS, [_alert(row) for row in _alerts(request)])


@require_safe
@project_page()
def alert_quality_json(request: ProjectRequest) -> HttpResponse:
    """Alert quality of the last days, by worst verdict, by outcome and per deployment."""
    found = read_alert_quality(project=request.project)
    rows, ends = (
        [asdict(row) for row in table]
        for table in (build_verdict_rows(found), build_outcome_rows(found))
    )
    deployments = _deployment_quality(request)
    return mark_uncached(
        JsonResponse(
            {"days": PERIOD_DAYS, "verdicts": rows, "ends": ends, "deployments": deployments}
        )
    )


@require_safe
@project_page()
def alert_quality_csv(request: ProjectRequest) -> HttpResponse:
    """One row per verdict."""
    rows = [asdict(row) for row in build_verdict_rows(read_alert_quality(project=request.project))]
    return _csv(
        request,
        "grades",
        ["kind", "total", "right", "false", "not_graded", "precision", "interval"],
        rows,
    )


@require_safe
@project_page()
def deployment_quality_csv(request: ProjectRequest) -> HttpResponse:
    """False verdicts per deployment: two rows for the project and for each model."""
    head = [one.name for one in fields(DeploymentQualityRow)]
    return _csv(request, "deployments", head, _deployment_quality(request))


def _deployment_quality(request: ProjectRequest) -> list[dict[str, Any]]:
    found = read_deployment_quality(project=request.project)
    return [asdict(row) for row in build_deployment_rows(found)]


def _alerts(request: ProjectRequest) -> Sequence[Alert]:
    return list_alerts(
        project=request.project, user=request.user, wanted=AlertFilter.read(request.GET)
    )


def _alert(row: Alert) -> dict[str, Any]:
    deployment = row.deployment
    owner = row.owner.get_username() if row.owner else None
    about: tuple[str | None, ...] = (
        deployment.model.name,
        deployment.version.name,
        deployment.environment,
    )
    about = (None, None, None) if row.cause == AlertCause.FLEET_SILENCE else about
    said = (row.number, row.title, row.state, row.severity, *about)
    group = row.group.title if row.group else None
    return dict(
        zip(ALERTS, (*said, row.opened_at, row.resolved_at, row.outcome, owner, group), strict=True)
    )


def _csv(
    request: ProjectRequest, name: str, head: Sequence[str], rows: Sequence[dict[str, Any]]
) -> HttpResponse:
    table = [[_cell(row[column]) for column in head] for row in rows]
    return mark_uncached(csv_response([list(head), *table], f"{request.project.slug}-{name}.csv"))


def _cell(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
