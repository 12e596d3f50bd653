"""Digests: merges many messages to one channel into one, after a hold or in a storm."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from dashboard.alerts.models import Alert, Channel, Delivery, DeliveryKind, DeliveryState
from dashboard.alerts.notification_policy import find_hold_end
from dashboard.alerts.payloads import GroupPayload, build_digest_payload
from dashboard.alerts.services.enqueue import build_subject, lock_channels, read_policy
from dashboard.alerts.services.transitions import lock_project
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

logger = logging.getLogger(__name__)

STORM_THRESHOLD = 10
"""Maximum number of messages that wait for one channel before they are merged."""
MAX_ALERTS_PER_MESSAGE = 200
"""Maximum number of alerts in one message: a storm of 1,000 alerts is five messages, each below 100
KiB."""
UNMERGEABLE_KINDS = (DeliveryKind.TEST, DeliveryKind.DIGEST)


def release_held_deliveries() -> int:
    """Releases held messages that may go now, as one message per channel; returns the number of
    messages.

    A failed project does not block the others."""
    count, errors = 0, []
    due = Delivery.objects.filter(state=DeliveryState.HELD, held_until__lte=clock.now())
    for project_id in sorted(set(due.values_list("project_id", flat=True))):
        try:
            with write_transaction():
                count += _project_release(project_id, due)
        except Exception as error:
            logger.exception("the held messages of project %s could not be released", project_id)
            errors.append(error)
    if errors:
        raise ExceptionGroup("projects whose messages could not be released", errors)
    return count


def storm_merge(*, channel: Channel) -> int:
    """Merges the waiting messages of a channel above STORM_THRESHOLD; returns the number of
    resulting messages. The caller holds the lock on the channel's row."""
    rows = list(query_waiting_deliveries(channel=channel))
    return (
        digests_write(channel=channel, rows=rows, at=clock.now())
        if len(rows) > STORM_THRESHOLD
        else 0
    )


def query_waiting_deliveries(*, channel: Channel) -> QuerySet[Delivery]:
    """Waiting messages of a channel that are about an alert and not in flight, oldest first."""
    waiting = Delivery.objects.filter(
        channel=channel, state=DeliveryState.WAITING, leased_until=None, alert__isnull=False
    )
    return waiting.exclude(kind__in=UNMERGEABLE_KINDS).order_by("pk")


def list_covered_alerts(*, delivery: Delivery) -> list[Alert]:
    """The alerts that a digest covers."""
    covers = delivery.facts.get("covers", [])
    return list(Alert.objects.filter(deliveries__message_id__in=covers).distinct().order_by("pk"))


def _project_release(project_id: int, due: QuerySet[Delivery]) -> int:
    lock_project(project_id)
    channels = lock_channels(project_id)
    rows = (
        due.filter(project_id=project_id).select_related("alert__deployment__model").order_by("pk")
    )
    by_channel: dict[int, list[Delivery]] = {}
    for row in _select_due(project_id, list(rows)):
        by_channel.setdefault(row.channel_id, []).append(row)
    return sum(_release(channels[pk], held) for pk, held in by_channel.items() if pk in channels)


def _select_due(project_id: int, rows: list[Delivery]) -> list[Delivery]:
    """The messages that may go now; rules and maintenance windows may have changed, and the others
    are held longer."""
    policy, now, found = read_policy(project_id), clock.now(), []
    for row in rows:
        later = (
            find_hold_end(policy, build_subject(row.alert), row.channel_id, now)
            if row.alert
            else None
        )
        if later is None:
            found.append(row)
        else:
            Delivery.objects.filter(pk=row.pk).update(held_until=later, next_attempt_at=later)
    return found


def _release(channel: Channel, rows: list[Delivery]) -> int:
    """Releases messages of alert groups one by one: the next claim merges them per group and names
    the shared traits. Merges the other messages into one."""
    groups = {
        row.pk: row.alert.group_id for row in rows if row.alert and row.alert.group_id is not None
    }
    alone = [row for row in rows if row.pk not in groups]
    released = [*groups, *(row.pk for row in alone if len(alone) == 1)]
    Delivery.objects.filter(pk__in=released).update(
        state=DeliveryState.WAITING, next_attempt_at=clock.now()
    )
    merged = (
        digests_write(channel=channel, rows=alone, at=clock.now()) if len(alone) > 1 else len(alone)
    )
    return len(set(groups.values())) + merged


def digests_write(
    *,
    channel: Channel,
    rows: Sequence[Delivery],
    at: datetime,
    group: GroupPayload | None = None,
    attempts: int = 0,
) -> int:
    """Writes the digests for these messages, with at most MAX_ALERTS_PER_MESSAGE alerts each;
    returns their number. The caller holds the lock on the channel's row."""
    count = 0
    for start in range(0, len(rows), MAX_ALERTS_PER_MESSAGE):
        part = rows[start : start + MAX_ALERTS_PER_MESSAGE]
        covers = list(
            dict.fromkeys(
                identity
                for row in part
                for identity in (row.message_id, *row.facts.get("covers", []))
            )
        )
        told = [(row.kind, row.facts) for row in part]
        digest = hashlib.sha256(
            f"{settings.BASE_URL} {channel.pk} {' '.join(covers)}".encode()
        ).hexdigest()
        Delivery.objects.create(
            project_id=channel.project_id,
            channel=channel,
            kind=DeliveryKind.DIGEST,
            message_id=f"msg_{digest[:32]}",
            facts=build_digest_payload(channel=channel, replaced=told, covers=covers, group=group),
            next_attempt_at=at,
            attempts=attempts,
            created_at=at,
        )
        Delivery.objects.filter(pk__in=[row.pk for row in part]).update(state=DeliveryState.MERGED)
        count += 1
    return count
