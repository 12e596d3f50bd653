"""Group messages: merges the waiting messages of a channel about alerts that belong together; the
caller holds the lock on the channel's row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from dashboard.alerts import links
from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertState,
    Channel,
    Delivery,
    DeliveryKind,
    DeliveryState,
)
from dashboard.alerts.payloads import GroupPayload
from dashboard.alerts.services.digest import (
    MAX_ALERTS_PER_MESSAGE,
    digests_write,
    query_waiting_deliveries,
)
from dashboard.common import clock
from dashboard.fleet.models import ModelVersion

MAX_ENVIRONMENTS_NAMED = 5
"""Maximum number of environments in a title."""
GroupKey = tuple[str, int]
"""`("environment", AlertGroup.id)`, or `("version", ModelVersion.id)`."""


def groups_merge(*, channel: Channel) -> int:
    """Merges due messages per group, and adds the group to a message that remains alone. Returns
    the number of merged messages."""
    rows = list(
        query_waiting_deliveries(channel=channel)
        .select_related("alert__group", "alert__deployment")
        .defer("alert__ran_on")
    )
    now, count = clock.now(), 0
    if not any(row.next_attempt_at <= now for row in rows):
        return 0
    found: dict[GroupKey, list[Delivery]] = {}
    versions = _find_multi_environment_versions(rows)
    for row in rows:
        if row.alert is None:
            continue
        if row.alert.group_id is not None:
            found.setdefault(("environment", row.alert.group_id), []).append(row)
        elif row.alert.deployment.version_id in versions:
            found.setdefault(("version", row.alert.deployment.version_id), []).append(row)
    for (kind, one), together in found.items():
        group = (
            _environment(channel, together, one)
            if kind == "environment"
            else _version(channel, one, versions[one])
        )
        earlier = _find_undelivered_digest(
            channel, group, room=MAX_ALERTS_PER_MESSAGE - len(together)
        )
        if not any(row.next_attempt_at <= now for row in (*earlier, *together)):
            continue
        if earlier or len({row.alert_id for row in together}) > 1:
            rows_of = sorted([*earlier, *together], key=lambda row: row.pk)
            if _has_pending_retry(rows_of, now):
                continue
            # Reminders join the digest repeatedly. Keep the highest number of attempts, so that the
            # digest fails in the end.
            tried = max(row.attempts for row in rows_of)
            digests_write(channel=channel, rows=rows_of, at=now, group=group, attempts=tried)
            count += len(together)
        else:
            _attach_group(together, group)
    return count


def _find_undelivered_digest(channel: Channel, group: GroupPayload, *, room: int) -> list[Delivery]:
    """An undelivered digest of the same group with enough room; the new messages are merged with
    it."""
    waiting = Delivery.objects.filter(
        channel=channel, state=DeliveryState.WAITING, leased_until=None, kind=DeliveryKind.DIGEST
    )
    for row in waiting.order_by("pk"):
        if (row.facts.get("group") or {}).get("link") == group["link"] and len(
            row.facts["alerts"]
        ) <= room:
            return [row]
    return []


def _find_multi_environment_versions(rows: Sequence[Delivery]) -> dict[int, list[Alert]]:
    """Versions in these messages with alerts in more than one environment, with their alerts that
    are open or in these messages."""
    wanted = {
        row.alert.deployment.version_id for row in rows if row.alert and row.alert.group_id is None
    }
    alerts = (
        Alert.objects.filter(deployment__version_id__in=wanted, cause=AlertCause.REGRESSION)
        .select_related("deployment")
        .defer("ran_on")
        .order_by("number")
    )
    told = {row.alert_id for row in rows}
    found: dict[int, list[Alert]] = {}
    for alert in alerts if wanted else ():
        if alert.pk in told or alert.state != AlertState.RESOLVED:
            found.setdefault(alert.deployment.version_id, []).append(alert)
    return {
        version: known
        for version, known in found.items()
        if len({alert.deployment.environment for alert in known}) > 1
    }


def _environment(channel: Channel, rows: Sequence[Delivery], group: int) -> GroupPayload:
    members = (
        Alert.objects.filter(group_id=group).order_by("number").values_list("number", flat=True)
    )
    title = next((row.alert.group.title for row in rows if row.alert and row.alert.group), "")
    return GroupPayload(
        kind="environment",
        title=title,
        alerts=_ids(members),
        link=links.group_url(project=channel.project.slug, group=group),
    )


def _version(channel: Channel, version: int, alerts: Sequence[Alert]) -> GroupPayload:
    named = ModelVersion.objects.select_related("model").get(pk=version)
    places = sorted({alert.deployment.environment for alert in alerts})
    listed = ", ".join(
        [
            *places[:MAX_ENVIRONMENTS_NAMED],
            *(["\u2026"] if len(places) > MAX_ENVIRONMENTS_NAMED else []),
        ]
    )
    title = f"{named.model.name} {named.name} in {len(places)} environments: {listed}"
    link = links.version_alerts_url(project=channel.project.slug, version=version)
    return GroupPayload(
        kind="version", title=title, alerts=_ids([alert.number for alert in alerts]), link=link
    )


def _ids(numbers: Iterable[int]) -> list[str]:
    return [f"A-{number}" for number in sorted(numbers)[:MAX_ALERTS_PER_MESSAGE]]


def _attach_group(rows: Sequence[Delivery], group: GroupPayload) -> None:
    for row in rows:
        if row.facts.get("group") != group:
            row.facts["group"] = group
            row.save(update_fields=["facts"])


def _has_pending_retry(rows: Sequence[Delivery], now: datetime) -> bool:
    """True if one of the messages failed and its retry is not due yet; merging it now with newer
    messages would retry it without end."""
    failed = [row.next_attempt_at for row in rows if row.attempts]
    return bool(failed) and min(failed) > now
