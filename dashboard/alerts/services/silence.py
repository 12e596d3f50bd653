"""Silence alerts: one alert if most instances of a model, or of the whole fleet, stop reporting
together; it ends when they report again."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertOutcome,
    AlertState,
    DeliveryKind,
    EventKind,
)
from dashboard.alerts.services.enqueue import enqueue_messages
from dashboard.alerts.services.transitions import (
    alert_close,
    alert_reopen,
    event_add,
    lock_project,
    silence_open,
)
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.metrics.silence import Silence
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import SILENT_AFTER_S
from dashboard.fleet.selectors.instances.recent_instances import (
    GONE_AFTER_S,
    RecentInstance,
    has_silent_process,
    list_recent_instances,
)
from dashboard.fleet.selectors.instances.silences import (
    Silences,
    find_most_silent_version,
    find_silences,
)
from dashboard.ingest.selectors import read_inbox_age
from dashboard.projects.models import Project

logger = logging.getLogger(__name__)

WATCH_INTERVAL_S = 15.0
"""Seconds between two checks of the fleets."""
MAX_WATCH_GAP_S = 60.0
"""Maximum seconds between two checks; after a longer gap this process was stopped and missed
reports."""
MAX_INBOX_AGE_S = 30.0
"""Maximum seconds that a report may wait in the inbox; beyond that, silence means a backlog and not
stopped instances."""


@dataclass
class _WatchTimes:
    """Start of the checks without a gap, and the last check, in Unix seconds."""

    since: float | None = None
    last: float | None = None


_watch_times = _WatchTimes()


def reset_watch_times() -> None:
    """Forgets all checks, as after a restart."""
    _watch_times.since = _watch_times.last = None


def silences_watch() -> int:
    """Opens, widens and closes silence alerts; returns the number of changes. A failed project does
    not block the others.

    A process that has just started, or has a backlog of reports, opens no alert: agents may still
    send stored reports."""
    now = clock.unix()
    if _watch_times.last is not None and 0 <= now - _watch_times.last < WATCH_INTERVAL_S:
        return 0
    if (
        _watch_times.since is None
        or _watch_times.last is None
        or not 0 <= now - _watch_times.last <= MAX_WATCH_GAP_S
    ):
        _watch_times.since = now
    _watch_times.last = now
    may_open = now - _watch_times.since >= SILENT_AFTER_S and read_inbox_age() <= MAX_INBOX_AGE_S
    count, errors = 0, []
    for project in Project.objects.order_by("pk"):
        try:
            count += project_watch(project, may_open)
        except Exception as error:
            logger.exception("the silence of project %s could not be checked", project.pk)
            errors.append(error)
    if errors:
        raise ExceptionGroup("projects whose silence could not be checked", errors)
    return count


def has_silence_alert(deployment: Deployment) -> bool:
    """True if an open silence alert covers this deployment."""
    rows = _list_open_alerts(deployment.project_id)
    return any(
        one.cause == AlertCause.FLEET_SILENCE or one.deployment.model_id == deployment.model_id
        for one in rows
    )


def silence_title(silence: Silence, name: str = "") -> str:
    """`ranker: 4 of 4 instances stopped reporting`; without a name, for the whole fleet."""
    return (
        f"{name}: {_format_instances(silence)} stopped reporting"
        if name
        else f"{_format_instances(silence)} of the fleet stopped reporting"
    )


def _format_instances(silence: Silence) -> str:
    return f"{silence.silent:,} of {silence.of:,} instances"


def project_watch(project: Project, may_open: bool) -> int:
    """Updates one project. The first check runs without the lock, because usually no instance is
    silent."""
    if not _list_open_alerts(project.pk) and not (
        may_open and has_silent_process(project_id=project.pk, after=SILENT_AFTER_S)
    ):
        return 0
    with write_transaction():
        lock_project(project.pk)
        alerts = _list_open_alerts(project.pk)
        begun = min([clock.now(), *(alert.opened_at for alert in alerts)])
        instances = list_recent_instances(
            project_id=project.pk, since=begun - timedelta(seconds=GONE_AFTER_S)
        )
        found = find_silences(instances, clock.now())
        count = sum(_follow(alert, alerts, found) for alert in alerts)
        return count + (
            _begin(project.pk, instances, found, _list_open_alerts(project.pk)) if may_open else 0
        )


def _list_open_alerts(project_id: int) -> list[Alert]:
    rows = Alert.objects.filter(project_id=project_id, cause__in=AlertCause.SILENT).exclude(
        state=AlertState.RESOLVED
    )
    return list(
        rows.select_related("deployment__model", "deployment__version", "project").order_by(
            "number"
        )
    )


def _follow(alert: Alert, alerts: list[Alert], found: Silences) -> bool:
    """Closes an alert whose instances report again; a model's alert becomes the fleet's alert if
    the whole fleet is silent."""
    whole = alert.cause == AlertCause.FLEET_SILENCE
    silence = found.fleet if whole else found.models.get(alert.deployment.model_id)
    if silence is None:
        alert_close(
            alert=alert,
            outcome=AlertOutcome.RECOVERED,
            text="More than half of the instances report again or ended as planned.",
        )
        return True
    if not whole and found.fleet is not None:
        return _widen(alert, alerts, found.fleet)
    title = silence_title(silence, "" if whole else alert.deployment.model.name)
    if (
        alert.state == AlertState.SNOOZED
        and alert.snoozed_until
        and alert.snoozed_until <= clock.now()
    ):
        alert.title = title
        alert_reopen(alert)
        return True
    if alert.title != title:
        Alert.objects.filter(pk=alert.pk).update(title=title)
    return False


def _widen(alert: Alert, alerts: list[Alert], silence: Silence) -> bool:
    first = alerts[0]
    if first.pk != alert.pk:
        text = f"A-{first.number} now covers the whole fleet."
        alert_close(alert=alert, outcome=AlertOutcome.STOPPED, text=text)
        return True
    alert.cause, alert.title = AlertCause.FLEET_SILENCE, silence_title(silence)
    alert.state, alert.snoozed_until = AlertState.OPEN, None
    alert.save()
    event = event_add(alert=alert, kind=EventKind.EVIDENCE, text=_text(silence))
    enqueue_messages(alert=alert, event=event, kind=DeliveryKind.CHANGED, verdict=None)
    return True


def _begin(
    project_id: int, instances: list[RecentInstance], found: Silences, alerts: list[Alert]
) -> int:
    """Opens one alert for the fleet, or one for each silent model."""
    if found.fleet is not None:
        wanted = [] if alerts else [(AlertCause.FLEET_SILENCE, found.fleet, "")]
    else:
        names = dict(WatchedModel.objects.filter(pk__in=found.models).values_list("pk", "name"))
        known = {alert.deployment.model_id for alert in alerts if alert.cause == AlertCause.SILENCE}
        wanted = [
            (AlertCause.SILENCE, one, names[model])
            for model, one in sorted(found.models.items())
            if model not in known
        ]
    return sum(_begin_one(project_id, instances, *one) for one in wanted)


def _begin_one(
    project_id: int, instances: list[RecentInstance], cause: str, silence: Silence, name: str
) -> bool:
    version, environment = find_most_silent_version(instances, silence, clock.now())
    rows = Deployment.objects.filter(version_id=version, environment=environment).select_related(
        "model", "version", "project"
    )
    deployment = rows.order_by("-started_minute", "-pk").first()
    if deployment is None or _was_closed_by_person(project_id, cause, deployment, silence):
        return False
    silence_open(
        deployment=deployment, cause=cause, title=silence_title(silence, name), text=_text(silence)
    )
    return True


def _was_closed_by_person(
    project_id: int, cause: str, deployment: Deployment, silence: Silence
) -> bool:
    """True if a person closed the alert of the same silence; instances that reported after that
    would be another silence."""
    rows = Alert.objects.filter(
        project_id=project_id, cause=cause, resolved_at__gte=clock.at(silence.last)
    )
    rows = (
        rows
        if cause == AlertCause.FLEET_SILENCE
        else rows.filter(deployment__model_id=deployment.model_id)
    )
    return rows.filter(
        outcome__in=(AlertOutcome.RESOLVED, AlertOutcome.DISMISSED, AlertOutcome.ACCEPTED)
    ).exists()


def _text(silence: Silence) -> str:
    first, last = clock.at(silence.first), clock.at(silence.last)
    models = f" of {len(silence.models):,} models" if len(silence.models) > 1 else ""
    when = (
        f"at {first:%H:%M} UTC"
        if f"{first:%H:%M}" == f"{last:%H:%M}"
        else f"between {first:%H:%M} and {last:%H:%M} UTC"
    )
    what = (
        f"{_format_instances(silence)}{models} sent their last report {when} and did not "
        "report an end."
    )
    return f"{what} Check the network, this dashboard, and deployments."
