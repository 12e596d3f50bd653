"""Reads alerts, their timelines, channels and deliveries for pages and the API."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.db.models import Count, Q, QuerySet

from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    AlertState,
    Channel,
    Delivery,
    DeliveryState,
    RollbackGuide,
)
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import VerdictKind


def list_alerts(*, project: Project) -> QuerySet[Alert]:
    """All alerts of a project with the related rows that a list shows, newest first."""
    related = (
        "project",
        "deployment__model",
        "deployment__version",
        "verdict__baseline__version",
        "owner",
        "group",
    )
    return (
        Alert.objects.filter(project=project)
        .select_related(*related)
        .defer("ran_on")
        .order_by("-number")
    )


def list_open_alerts(*, project: Project) -> QuerySet[Alert]:
    """Unresolved alerts, ROLL BACK first, then the newest."""
    worst_first = Q(severity=VerdictKind.ROLL_BACK)
    return (
        list_alerts(project=project)
        .exclude(state=AlertState.RESOLVED)
        .annotate(urgent=worst_first)
        .order_by("-urgent", "-number")
    )


def count_alerts_by_state(*, project: Project) -> dict[str, int]:
    """Number of open, acknowledged and snoozed alerts; resolved alerts are not counted."""
    found = (
        Alert.objects.filter(project=project)
        .exclude(state=AlertState.RESOLVED)
        .values_list("state")
        .annotate(count=Count("pk"))
    )
    counts = dict(found)
    return {
        state: counts.get(state, 0)
        for state in (AlertState.OPEN, AlertState.ACKNOWLEDGED, AlertState.SNOOZED)
    }


def count_open_alerts_by_model(*, project: Project) -> dict[int, int]:
    """Number of unresolved alerts per model ID; models without alerts are left out."""
    unresolved = Alert.objects.filter(project=project).exclude(state=AlertState.RESOLVED)
    return dict(unresolved.values_list("deployment__model_id").annotate(count=Count("pk")))


def find_alert(*, project: Project, number: int) -> Alert | None:
    """One alert of this project, or None."""
    return list_alerts(project=project).filter(number=number).first()


def find_deployment_alert(*, deployment: Deployment) -> Alert | None:
    """The unresolved alert of a deployment, else its newest alert, or None."""
    found = list_alerts(project=deployment.project).filter(
        deployment=deployment, cause=AlertCause.REGRESSION
    )
    return found.exclude(state=AlertState.RESOLVED).first() or found.first()


def list_alert_events(*, alert: Alert) -> QuerySet[AlertEvent]:
    """The timeline, newest first; each change carries the verdict at that time."""
    return alert.events.select_related("verdict__baseline__version").order_by("-at", "-pk")


def list_alert_deliveries(*, alert: Alert) -> QuerySet[Delivery]:
    """The notifications of an alert in order, with channels and delivery attempts."""
    return alert.deliveries.select_related("channel").prefetch_related("tries").order_by("pk")


def list_deliveries(*, project: Project) -> QuerySet[Delivery]:
    """All messages of a project, newest first."""
    return (
        Delivery.objects.filter(project=project)
        .select_related("channel", "alert")
        .order_by("-created_at", "-pk")
    )


def list_dead_deliveries(*, project: Project) -> QuerySet[Delivery]:
    """Messages that were not delivered and are not retried; the rows of the banner."""
    return list_deliveries(project=project).filter(state=DeliveryState.DEAD)


def list_channels(*, project: Project) -> QuerySet[Channel]:
    """The channels of a project, by name."""
    return Channel.objects.filter(project=project).order_by("name", "pk")


def mask_channel_address(*, channel: Channel) -> str:
    """Address of a channel without its secret part: `hooks.slack.com/…/k3Jx`."""
    if channel.kind == "apprise":
        return f"{channel.address.partition('://')[0]}://\u2026"
    host = urlsplit(channel.address).hostname or ""
    return (
        f"{host}/\u2026/{channel.address[-4:]}" if len(channel.address) >= 24 else f"{host}/\u2026"
    )


def find_runbook(*, project: Project, model_name: str) -> RollbackGuide | None:
    """The owners' runbook for a model, or None."""
    return RollbackGuide.objects.filter(project=project, model_name=model_name).first()


def count_deliveries_by_state(project: Project | None = None) -> dict[str, int]:
    """Number of messages in each delivery state, for one project or all projects; every state is
    present."""
    rows = Delivery.objects.all() if project is None else Delivery.objects.filter(project=project)
    return dict.fromkeys(DeliveryState.values, 0) | dict(
        rows.values_list("state").annotate(count=Count("pk")).order_by()
    )
