"""Groups alerts that share an environment or its change; idempotent and safe with concurrent
workers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from django.db.models import QuerySet

from dashboard.alerts.correlation import (
    MAX_ALARM_GAP,
    Alarm,
    Trait,
    cluster_alarms,
    find_shared_traits,
    format_group_title,
    format_shared_traits,
)
from dashboard.alerts.models import Alert, AlertGroup, EventKind
from dashboard.alerts.services.transitions import event_add, lock_project
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.selectors.versions.machines import count_models_by_trait, read_machines
from dashboard.regressions.evidence_reader import read_environment

logger = logging.getLogger(__name__)

LOOKBACK = timedelta(hours=1)
"""Maximum age of an alert for grouping; later its environment can no longer be read, and the alert
remains alone."""
CHANGE_KEYS = ("gpu", "driver", "cuda", "torch", "triton", "python")
"""Keys that count as a change of the environment, among all that may differ between two
versions."""
MAX_ALERTS_NAMED, MAX_TRAITS_KEPT = 5, 20
"""Maximum number of alerts in a timeline event, and of traits stored in a group."""


def alerts_correlate() -> int:
    """Correlates all new alerts; returns the number of alerts that joined a group. A failed project
    does not block the others."""
    count, errors = 0, []
    for project_id in sorted(set(_query_uncorrelated().values_list("project_id", flat=True))):
        try:
            with write_transaction():
                lock_project(project_id)
                count += _project_group(project_id)
        except Exception as error:
            logger.exception("the alerts of project %s could not be grouped", project_id)
            errors.append(error)
    if errors:
        raise ExceptionGroup("projects whose alerts could not be grouped", errors)
    return count


def _query_uncorrelated() -> QuerySet[Alert]:
    return Alert.objects.filter(ran_on__isnull=True, opened_at__gte=clock.now() - LOOKBACK)


def _project_group(project_id: int) -> int:
    unseen = list(
        _query_uncorrelated()
        .filter(project_id=project_id)
        .select_related("deployment", "verdict")
        .order_by("pk")
    )
    if not unseen:
        return 0
    _record_traits(unseen)
    since = min(alert.opened_at for alert in unseen) - MAX_ALARM_GAP
    recent = Alert.objects.filter(project_id=project_id, opened_at__gte=since).exclude(
        ran_on__isnull=True
    )
    alarms = {alert.pk: alert for alert in recent.select_related("deployment").order_by("pk")}
    running = count_models_by_trait(
        project_id=project_id, since_minute=clock.minute_of(clock.unix())
    )
    found = cluster_alarms(map(_alarm, alarms.values()), running)
    return sum(_join(project_id, [alarms[one.id] for one in members], running) for members in found)


def _record_traits(alerts: Sequence[Alert]) -> None:
    """Stores the traits of each alert, so that a later run finds the same."""
    seen = read_machines(
        places={(alert.deployment.version_id, alert.deployment.environment) for alert in alerts},
        since_minute=clock.minute_of(clock.unix()),
    )
    for alert in alerts:
        traits = seen.get((alert.deployment.version_id, alert.deployment.environment), set()) | set(
            _changes(alert)
        )
        alert.ran_on = sorted(map(list, traits))
    Alert.objects.bulk_update(alerts, ["ran_on"], batch_size=200)


def _changes(alert: Alert) -> Iterable[Trait]:
    """Changes on most instances of the version compared with its baseline, from the evidence of the
    verdict."""
    for one in read_environment(alert.verdict.evidence if alert.verdict else None):
        before, after = (next(iter(side), ("", 0))[0] for side in (one.baseline, one.candidate))
        if one.key in CHANGE_KEYS and before and after and before != after:
            yield "changed", f"{one.key} {before} to {after}"


def _alarm(alert: Alert) -> Alarm:
    traits = frozenset((str(kind), str(name)) for kind, name in alert.ran_on or ())
    return Alarm(
        alert.pk, alert.deployment.version_id, alert.deployment.model_id, alert.opened_at, traits
    )


def _join(project_id: int, together: Sequence[Alert], running: Mapping[Trait, int]) -> int:
    """Moves all alerts to the oldest of their groups, or to a new group if they have none."""
    known = sorted({alert.group_id for alert in together if alert.group_id is not None})
    joining = [alert for alert in together if alert.group_id is None]
    if not joining and len(known) < 2:
        return 0
    group = (
        AlertGroup.objects.get(pk=known[0])
        if known
        else AlertGroup(project_id=project_id, opened_at=together[0].opened_at)
    )
    if not known:
        group.save()
    Alert.objects.filter(pk__in=[alert.pk for alert in joining]).update(group=group)
    Alert.objects.filter(group_id__in=known[1:]).update(group=group)
    AlertGroup.objects.filter(pk__in=known[1:]).delete()
    members = list(
        Alert.objects.filter(group=group)
        .select_related("deployment")
        .order_by("opened_at", "number")
    )
    shared = find_shared_traits([_alarm(alert) for alert in members], running)
    group.title, group.opened_at = format_group_title(len(members), shared), members[0].opened_at
    group.shared = [
        {"kind": one.kind, "name": one.name, "alerts": one.alarms}
        for one in shared[:MAX_TRAITS_KEPT]
    ]
    group.save()
    words = format_shared_traits(len(members), shared)
    lines = [_line(alert, members, words) for alert in joining]
    for alert, line in zip(joining, lines, strict=True):
        event_add(alert=alert, kind=EventKind.GROUPED, text=line)
    return len(joining)


def _line(alert: Alert, members: Sequence[Alert], words: str) -> str:
    others = [f"A-{one.number}" for one in members if one.pk != alert.pk]
    more = f" and {len(others) - MAX_ALERTS_NAMED} more" if len(others) > MAX_ALERTS_NAMED else ""
    return (
        f"Opened within {MAX_ALARM_GAP.seconds // 60} min of "
        f"{', '.join(others[:MAX_ALERTS_NAMED])}{more}. Shared: {words}."
    )
