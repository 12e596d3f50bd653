"""Related alerts: alerts with shared infrastructure, and alerts of one version in several
environments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project

MAX_ALERTS_SHOWN = 12


@dataclass(frozen=True)
class RelatedAlerts:
    """Related alerts of an alert: of the same group, or of the same version in other
    environments."""

    title: str
    others: Sequence[Alert]
    environment: bool

    @property
    def shown(self) -> Sequence[Alert]:
        """The first of them."""
        return self.others[:MAX_ALERTS_SHOWN]


def find_related_alerts(*, alert: Alert) -> RelatedAlerts | None:
    """Related alerts in one query; None for an alert without related alerts."""
    if alert.cause != AlertCause.REGRESSION:
        return None
    same_version = Q(deployment__version_id=alert.deployment.version_id) & ~Q(
        deployment__environment=alert.deployment.environment
    )
    wanted = same_version & ~Q(state=AlertState.RESOLVED) & Q(cause=AlertCause.REGRESSION)
    if alert.group_id is not None:
        wanted |= Q(group_id=alert.group_id)
    rows = for_project(Alert, alert.project).filter(wanted).exclude(pk=alert.pk)
    others = list(
        rows.select_related("deployment__model", "deployment__version")
        .defer("ran_on")
        .order_by("-number")[: MAX_ALERTS_SHOWN * 10]
    )
    if alert.group is not None:
        return RelatedAlerts(alert.group.title, others, environment=True)
    return (
        RelatedAlerts(
            f"{alert.deployment.version.name} also has alerts in other environments",
            others,
            environment=False,
        )
        if others
        else None
    )


def attach_other_environments(*, project: Project, alerts: Iterable[Alert]) -> None:
    """Sets `elsewhere` of each alert to the open alerts of its version in other environments; one
    query."""
    rows = list(alerts)
    versions = {alert.deployment.version_id for alert in rows if alert.state != AlertState.RESOLVED}
    open_now = (
        for_project(Alert, project)
        .filter(deployment__version_id__in=versions, cause=AlertCause.REGRESSION)
        .exclude(state=AlertState.RESOLVED)
    )
    places: dict[int, list[tuple[str, int]]] = {}
    for version, environment, number in open_now.values_list(
        "deployment__version_id", "deployment__environment", "number"
    ).order_by("number"):
        places.setdefault(version, []).append((environment, number))
    for alert in rows:
        known = (
            places.get(alert.deployment.version_id, [])
            if alert.state != AlertState.RESOLVED
            else []
        )
        vars(alert)["elsewhere"] = [
            (place, number) for place, number in known if place != alert.deployment.environment
        ]
