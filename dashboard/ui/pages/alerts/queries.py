"""Data of the Alert page: the alert with its events, verdicts, notifications, calls and instances,
in at most eight queries for a usual alert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.http import Http404

from dashboard.alerts.current_verdict import resolve_current_verdict
from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    AlertState,
    Channel,
    Delivery,
    RollbackGuide,
)
from dashboard.common import clock
from dashboard.common.raw_queries import fetch_objects_together
from dashboard.fleet.deployment_marks import list_newest_marks
from dashboard.fleet.models import DeploymentMark
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.models import Verdict
from dashboard.ui.pages.alerts.related import RelatedAlerts, find_related_alerts
from dashboard.vocabulary.severity import ALERTING_VERDICTS, rank_severity

MAX_ROWS = 200


@dataclass
class AlertData:
    """One alert and its related data. `verdicts` are those of the timeline and the current one, the
    most relevant first; `channels` is the number of enabled channels."""

    alert: Alert
    events: list[AlertEvent]
    deliveries: list[Delivery]
    guide: RollbackGuide | None
    verdict: Verdict | None
    channels: int
    posted: list[DeploymentMark]
    related: RelatedAlerts | None
    title_at: datetime | None
    """Time of the verdict with the values in the title; None if no verdict is known."""
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def bad(self) -> Verdict | None:
        """The newest verdict that is WATCH or worse: the evidence of the alert."""
        return next((one for one in self.verdicts if rank_severity(one.kind)), None)


def alert_or_404(*, project: Project, number: int) -> Alert:
    """The alert with this number in this project."""
    related = ("deployment__version", "deployment__model", "owner", "group")
    rows = for_project(Alert, project).select_related(*related, "verdict__baseline__version")
    alert = rows.defer("ran_on").filter(number=number).first()
    if alert is None:
        raise Http404("Alert not found.")
    alert.project = alert.deployment.project = project
    return alert


def read_alert_data(*, project: Project, number: int) -> AlertData:
    """Reads one alert with its timeline."""
    alert = alert_or_404(project=project, number=number)
    now_verdict = (
        None
        if alert.cause in AlertCause.SILENT
        else resolve_current_verdict(deployment_id=alert.deployment_id)
    )
    events, deliveries, marks, guides, channels = fetch_objects_together(
        AlertEvent.objects.filter(alert=alert).order_by("-at", "-pk")[:MAX_ROWS],
        Delivery.objects.filter(alert=alert).order_by("-created_at", "-pk")[:MAX_ROWS],
        _query_marks(alert),
        for_project(RollbackGuide, project).filter(model_name=alert.deployment.model.name),
        for_project(Channel, project)
        .filter(Q(enabled=True) | Q(deliveries__alert=alert))
        .distinct(),
    )
    known = {one.pk: one for one in (alert.verdict, now_verdict) if one is not None}
    verdicts = known | _read_verdicts({one.verdict_id for one in events} - {None, *known})
    events.sort(key=lambda one: (one.at, one.pk), reverse=True)
    for event in events:
        event.verdict = verdicts.get(event.verdict_id)
    by_id = {one.pk: one for one in channels}
    for delivery in deliveries:
        delivery.channel = by_id[delivery.channel_id]
    shown = [alert.verdict, *(event.verdict for event in events)]
    # A later alert may have changed the verdict since a resolved alert ended.
    shown = [*shown, now_verdict] if alert.state == AlertState.RESOLVED else [now_verdict, *shown]
    return AlertData(
        alert=alert,
        events=events,
        deliveries=sorted(deliveries, key=lambda one: (one.created_at, one.pk), reverse=True),
        guide=guides[0] if guides else None,
        verdict=now_verdict,
        channels=sum(one.enabled for one in channels),
        posted=sorted(marks, key=lambda mark: (mark.at, mark.pk)),
        related=find_related_alerts(alert=alert),
        title_at=_find_title_time(alert, verdicts),
        verdicts=list(dict.fromkeys(one for one in shown if one is not None)),
    )


def _query_marks(alert: Alert) -> QuerySet[DeploymentMark]:
    """Deployments that CI recorded near the alert."""
    deployment = alert.deployment
    return list_newest_marks(
        project_id=alert.project_id,
        model_name=deployment.model.name,
        environment=deployment.environment,
        first=clock.at_minute(deployment.started_minute - 60),
        last=(alert.resolved_at or clock.now()) + timedelta(hours=1),
    )


def _read_verdicts(ids: set[int | None]) -> dict[int, Verdict]:
    """The verdicts of the timeline; no query if all are known."""
    if not ids:
        return {}
    rows = Verdict.objects.filter(pk__in=ids).select_related("baseline__version")
    return {one.pk: one for one in rows}


def _find_title_time(alert: Alert, known: Mapping[int, Verdict]) -> datetime | None:
    """The title keeps the values of the newest verdict that is WATCH or worse, even if the verdict
    row is updated later."""
    if alert.verdict is None or rank_severity(alert.verdict.kind):
        return alert.verdict.created_at if alert.verdict else None
    earlier = [
        one for one in known.values() if rank_severity(one.kind) and one.pk < alert.verdict.pk
    ]
    if earlier:
        return max(earlier, key=lambda one: one.pk).created_at
    rows = Verdict.objects.filter(
        deployment=alert.deployment, pk__lt=alert.verdict.pk, kind__in=ALERTING_VERDICTS
    )
    return rows.order_by("-pk").values_list("created_at", flat=True).first()


def list_baselines(page: AlertData) -> Sequence[Verdict]:
    """The verdicts that have a baseline, newest first."""
    return [one for one in page.verdicts if one.baseline is not None]
