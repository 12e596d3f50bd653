"""Alerts for the pages: the list, and one alert with its timeline, notifications and runbook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, Count, F, Q, QuerySet, When
from django.db.models.functions import Lower
from django.http import Http404

from dashboard.alerts.current_verdict import resolve_current_verdict
from dashboard.alerts.models import Alert, AlertEvent, AlertState, Channel, Delivery, RollbackGuide
from dashboard.common import clock
from dashboard.fleet.deployment_marks import list_marks
from dashboard.fleet.models import DeploymentMark
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.models import Verdict
from dashboard.ui.pages.alerts.group_queries import (
    AlertFilter,
    RelatedAlerts,
    attach_other_environments,
    find_related_alerts,
)
from dashboard.vocabulary.severity import ALERTING_VERDICTS, rank_severity

MAX_ALERTS_LISTED = 200
"""The maximum for a file."""


@dataclass
class AlertData:
    """One alert and its related data."""

    alert: Alert
    events: list[AlertEvent]
    deliveries: list[Delivery]
    guide: RollbackGuide | None
    verdict: Verdict | None
    channels: int
    posted: list[DeploymentMark]
    together: RelatedAlerts | None
    title_at: datetime | None
    """Time of the verdict with the values in the title; None if no verdict is known."""


DEFAULT_ORDER = ("waiting", "taken", "-opened_at", "-pk")
"""Open alerts first, ROLL BACK before the others, unassigned before assigned alerts, then the
newest."""


def list_alerts(
    *,
    project: Project,
    open_only: bool,
    order: Sequence[str] = DEFAULT_ORDER,
    narrowed: AlertFilter | None = None,
    first: int = 0,
    most: int = MAX_ALERTS_LISTED,
) -> Sequence[Alert]:
    """Alerts from an offset of a sort order, with their related alerts."""
    rows = (
        _query_filtered_alerts(project, open_only, narrowed)
        .select_related("deployment__version", "deployment__model", "owner", "group")
        .defer("ran_on")
    )
    urgency = Case(
        *(When(worst=kind, then=place) for place, kind in enumerate(ALERTING_VERDICTS)),
        default=len(ALERTING_VERDICTS),
    )
    waiting = Case(When(state=AlertState.RESOLVED, then=3), default=urgency)
    taken = Case(When(state=AlertState.OPEN, then=0), default=1)
    named = {
        "waiting": waiting,
        "taken": taken,
        "urgency": urgency,
        "model_name": Lower("deployment__model__name"),
    }
    # An alert that has not ended has no end and comes last in both directions.
    by_field = [
        F(one.removeprefix("-")).desc(nulls_last=True)
        if one.startswith("-")
        else F(one).asc(nulls_last=True)
        for one in order
    ]
    found = list(rows.annotate(**named).order_by(*by_field)[first : first + most])
    attach_other_environments(project=project, alerts=found)
    return found


def count_alerts(*, project: Project, open_only: bool, narrowed: AlertFilter) -> int:
    """Number of alerts in the list."""
    return _query_filtered_alerts(project, open_only, narrowed).count()


def _query_filtered_alerts(
    project: Project, open_only: bool, narrowed: AlertFilter | None
) -> QuerySet[Alert]:
    rows = for_project(Alert, project)
    rows = narrowed.rows(rows) if narrowed else rows
    return rows.exclude(state=AlertState.RESOLVED) if open_only else rows


def count_alerts_by_state(*, project: Project) -> dict[str, int]:
    """Number of alerts, of unresolved alerts, and of open, acknowledged and snoozed alerts."""
    by_state = {state.value: Count("pk", filter=Q(state=state)) for state in AlertState}
    counts = for_project(Alert, project).aggregate(total=Count("pk"), **by_state)
    return counts | {"waiting": counts["total"] - counts[AlertState.RESOLVED]}


def alert_or_404(*, project: Project, number: int) -> Alert:
    """The alert with this number in this project."""
    alert = _alerts(project).filter(number=number).first()
    if alert is None:
        raise Http404("Alert not found.")
    alert.project = project
    return alert


def read_alert_data(*, project: Project, number: int) -> AlertData:
    """One alert with its timeline, in at most eleven queries."""
    alert = alert_or_404(project=project, number=number)
    deployment = alert.deployment
    events = AlertEvent.objects.filter(alert=alert).select_related("verdict").order_by("-at", "-pk")
    deliveries = (
        Delivery.objects.filter(alert=alert)
        .select_related("channel")
        .order_by("-created_at", "-pk")
    )
    return AlertData(
        alert=alert,
        events=list(events[:MAX_ALERTS_LISTED]),
        deliveries=list(deliveries[:MAX_ALERTS_LISTED]),
        guide=for_project(RollbackGuide, project)
        .filter(model_name=alert.deployment.model.name)
        .first(),
        verdict=resolve_current_verdict(deployment_id=alert.deployment_id),
        channels=for_project(Channel, project).filter(enabled=True).count(),
        posted=list_marks(
            project_id=project.pk,
            model_name=deployment.model.name,
            environment=deployment.environment,
            first=clock.at_minute(deployment.started_minute - 60),
            last=(alert.resolved_at or clock.now()) + timedelta(hours=1),
        ),
        together=find_related_alerts(alert=alert),
        title_at=_find_title_time(alert),
    )


def _find_title_time(alert: Alert) -> datetime | None:
    """The title keeps the values of the newest verdict that is WATCH or worse, even if the verdict
    row is updated later."""
    if alert.verdict is None or rank_severity(alert.verdict.kind):
        return alert.verdict.created_at if alert.verdict else None
    rows = Verdict.objects.filter(
        deployment=alert.deployment, pk__lt=alert.verdict.pk, kind__in=ALERTING_VERDICTS
    )
    return rows.order_by("-pk").values_list("created_at", flat=True).first()


def _alerts(project: Project) -> QuerySet[Alert]:
    related = (
        "deployment__version",
        "deployment__model",
        "owner",
        "group",
        "verdict__baseline__version",
    )
    return for_project(Alert, project).select_related(*related).defer("ran_on")
