"""Delivery worker: claims a message by lease, sends it outside any transaction, and records the
result. After a crash in between, the message is sent again with the same ID.

Channels are independent of each other. Each channel has at most one message in flight, and the next
follows in order."""

from __future__ import annotations

import logging
import random
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from dashboard.alerts.channels import CHANNELS, DeliveryError, Message
from dashboard.alerts.models import (
    AlertEvent,
    Channel,
    Delivery,
    DeliveryAttempt,
    DeliveryKind,
    DeliveryState,
    EventKind,
)
from dashboard.alerts.services.channels import channel_give_up
from dashboard.alerts.services.digest import list_covered_alerts, storm_merge
from dashboard.alerts.services.merge_groups import groups_merge
from dashboard.alerts.services.retry_after import parse_retry_after
from dashboard.common import clock
from dashboard.common.call_timeout import call_with_timeout
from dashboard.common.failpoints import crash_point
from dashboard.common.outbound.client import OutboundError, OutboundResponse
from dashboard.common.write_lock import write_transaction
from dashboard.vocabulary.numbers import significant

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
MAX_CLOCK_SKEW = timedelta(seconds=60)
"""Maximum difference between the clocks of machines. A message without an attempt is never
postponed by more."""
MAX_PARALLEL_CHANNELS = 16
"""Maximum number of channels that one worker sends to in parallel."""
MAX_OVERTIME_S = 30.0
"""Time limit in seconds of the slowest kind of channel, and maximum overtime of a worker."""
GRACE_S = 2.0
"""Seconds after a channel's own limit at which its attempt is aborted from outside."""
POLL_INTERVAL_S = 0.5
"""Seconds between checks for due messages of other channels while some attempts are in progress."""
RETRY_DELAYS_S = (0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
JITTER_RATIO = 0.2
MAX_ANSWER_LENGTH = 500
MAX_NOT_FOUND_TRIES = 4
"""Number of attempts after which a 404 disables the channel: half an hour, in which a receiver that
is being replaced returns."""


@dataclass(frozen=True)
class Claim:
    """A delivery that this worker may attempt until the lease ends."""

    delivery: Delivery
    channel: Channel
    attempt: DeliveryAttempt


@dataclass(frozen=True)
class DeliveryResult:
    """Result of an attempt."""

    delivered: bool
    text: str
    status: int | None = None
    permanent: bool = False
    disables: bool = False
    wait: float = 0.0


def deliveries_send(*, seconds: float = 10.0) -> int:
    """Attempts all due messages for about `seconds`, in parallel per channel; returns the number of
    delivered messages.

    A thread sends one message to one channel and uses no database, so a slow channel delays only
    itself. While the last attempts run, other channels continue if they are sure to finish in
    time."""
    count, stop = 0, time.monotonic() + seconds
    under_way: dict[Future[DeliveryResult], Claim] = {}
    with ThreadPoolExecutor(
        MAX_PARALLEL_CHANNELS, thread_name_prefix="compilewatch-deliver"
    ) as lanes:
        while True:
            while len(under_way) < MAX_PARALLEL_CHANNELS and (
                claim := _claim_in_time(stop, waits=bool(under_way))
            ):
                crash_point("delivery_leased")
                under_way[lanes.submit(delivery_try, claim)] = claim
            if not under_way:
                return count
            done, _ = wait(under_way, timeout=POLL_INTERVAL_S, return_when=FIRST_COMPLETED)
            for future in done:
                crash_point("delivery_sent")
                delivery_mark(under_way.pop(future), future.result())
                count += future.result().delivered


def _claim_in_time(stop: float, *, waits: bool) -> Claim | None:
    """Claims any due message until `stop`. After that, claims only messages that are sure to finish
    before the attempts in progress must."""
    now = time.monotonic()
    if now < stop:
        return delivery_claim()
    return delivery_claim(within=stop + MAX_OVERTIME_S - now) if waits else None


def delivery_claim(*, within: float = MAX_OVERTIME_S) -> Claim | None:
    """Claims the next due message that no other worker holds, of a kind that takes at most `within`
    seconds.

    Only the oldest message of a channel may go. A waiting test message does not block an alert."""
    quick = [kind for kind, one in CHANNELS.items() if one.seconds <= within]
    for channel_id in (
        _due()
        .filter(channel__kind__in=quick)
        .order_by("next_attempt_at", "pk")
        .values_list("channel_id", flat=True)
    ):
        with write_transaction():
            # Another worker that holds the channel's row is claiming its next delivery now, so
            # skip the channel.
            channel = (
                Channel.objects.select_for_update(no_key=True, skip_locked=True)
                .filter(pk=channel_id)
                .first()
            )
            if channel:
                groups_merge(channel=channel)
                storm_merge(channel=channel)
            delivery = _due().filter(channel=channel).order_by("pk").first() if channel else None
            if channel and delivery:
                delivery.leased_until = clock.now() + LEASE
                delivery.attempts += 1
                delivery.save(update_fields=["leased_until", "attempts"])
                return Claim(
                    delivery,
                    channel,
                    DeliveryAttempt.objects.create(delivery=delivery, started_at=clock.now()),
                )
    return None


def delivery_try(claim: Claim) -> DeliveryResult:
    """Sends once; returns every failure as a result and raises no exception."""
    delivery, channel = claim.delivery, claim.channel
    try:
        kind = CHANNELS[channel.kind]
        payload = kind.build(
            Message(delivery.message_id, delivery.kind, delivery.created_at, delivery.facts)
        )
        answer = call_with_timeout(
            lambda: kind.send(payload, channel), seconds=kind.seconds + GRACE_S
        )
    except DeliveryError as error:
        wait = (
            parse_retry_after(error.answer.retry_after, now=clock.unix()) if error.answer else 0.0
        )
        disables = error.disables or (
            _status(error.answer) == 404 and delivery.attempts >= MAX_NOT_FOUND_TRIES
        )
        permanent = error.permanent or disables
        return DeliveryResult(
            False,
            _mask_answer(channel, str(error), error.answer),
            _status(error.answer),
            permanent,
            disables,
            wait,
        )
    except OutboundError as error:
        return DeliveryResult(False, _mask_answer(channel, str(error), None))
    except TimeoutError:
        return DeliveryResult(False, f"Timed out after {significant(kind.seconds)} s.")
    except Exception as error:
        logger.exception("delivery %s could not be built or sent", delivery.message_id)
        return DeliveryResult(
            False, f"Internal error ({type(error).__name__}); see the log of compilewatch."
        )
    return DeliveryResult(True, _mask_answer(channel, "", answer), answer.status)


def delivery_mark(claim: Claim, result: DeliveryResult) -> None:
    """Records the result of an attempt, and the next step."""
    now = clock.now()
    with write_transaction():
        channel = Channel.objects.select_for_update(no_key=True).get(pk=claim.channel.pk)
        DeliveryAttempt.objects.filter(pk=claim.attempt.pk).update(
            ended_at=now, status=result.status, answer=result.text
        )
        pace = CHANNELS[channel.kind].pace
        if pace or result.wait:
            channel.not_before = now + timedelta(seconds=max(pace, result.wait))
            channel.save(update_fields=["not_before"])
        delivery = Delivery.objects.get(pk=claim.delivery.pk)
        delivery.last_status, delivery.last_answer = result.status, result.text
        if result.delivered:
            delivery.state, delivery.delivered_at, delivery.leased_until = (
                DeliveryState.DELIVERED,
                now,
                None,
            )
        elif (
            delivery.state == DeliveryState.WAITING and delivery.attempts == claim.delivery.attempts
        ):
            _retry_or_give_up(delivery, result)
        delivery.save()
        _event(delivery, channel, result)
        if result.disables:
            channel_give_up(channel=channel, reason=result.text)


def retry_delay(*, message_id: str, attempts: int) -> float:
    """Seconds until the next attempt after `attempts` attempts; spread by message ID, so that
    messages of a storm are not retried together."""
    spread = random.Random(f"{message_id} {attempts}").uniform(1 - JITTER_RATIO, 1 + JITTER_RATIO)
    return RETRY_DELAYS_S[attempts] * spread


def _due() -> QuerySet[Delivery]:
    """Messages that may be sent now. A time that was computed while the clock was ahead does not
    delay a message by hours or without end."""
    now = clock.now()
    ahead = now + MAX_CLOCK_SKEW
    newest = (
        DeliveryAttempt.objects.filter(delivery=OuterRef("pk"))
        .order_by("-pk")
        .values("started_at")[:1]
    )
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING).annotate(
        tried_at=Subquery(newest)
    )
    same_channel = waiting.filter(channel=OuterRef("channel"))
    earlier = same_channel.filter(pk__lt=OuterRef("pk"))
    return waiting.filter(
        ~Exists(earlier.exclude(kind=DeliveryKind.TEST)),
        ~Q(Exists(earlier), kind=DeliveryKind.TEST),
        # A receiver may ask for a wait that is longer than the pace: then a failed message waits
        # as well.
        Q(channel__not_before=None)
        | Q(channel__not_before__lte=now)
        | Q(
            ~Exists(same_channel.filter(attempts__gt=0, tried_at__lte=ahead)),
            channel__not_before__gt=ahead,
        ),
        ~Exists(same_channel.filter(leased_until__gt=now, leased_until__lte=ahead + LEASE)),
        Q(next_attempt_at__lte=now)
        | Q(attempts=0, next_attempt_at__gt=ahead)
        | Q(tried_at__gt=ahead),
        channel__enabled=True,
    )


def _retry_or_give_up(delivery: Delivery, result: DeliveryResult) -> None:
    delivery.leased_until = None
    if result.permanent or delivery.attempts >= len(RETRY_DELAYS_S):
        delivery.state = DeliveryState.DEAD
        return
    delay = max(
        retry_delay(message_id=delivery.message_id, attempts=delivery.attempts), result.wait
    )
    delivery.next_attempt_at = clock.now() + timedelta(seconds=delay)


def _event(delivery: Delivery, channel: Channel, result: DeliveryResult) -> None:
    """Adds a timeline event to every alert that the message is about."""
    kind = (
        EventKind.DELIVERED
        if result.delivered
        else EventKind.FAILED
        if delivery.state == DeliveryState.DEAD
        else None
    )
    if kind is None:
        return
    text = f"{CHANNELS[channel.kind].label} {channel.name}"
    alerts = [delivery.alert_id] if delivery.alert_id is not None else []
    if delivery.kind == DeliveryKind.DIGEST:
        alerts = [alert.pk for alert in list_covered_alerts(delivery=delivery)]
        text += f", in one message about {len(alerts)} alerts"
    text += "" if result.delivered else f": {result.text}"
    AlertEvent.objects.bulk_create(
        AlertEvent(alert_id=alert, at=clock.now(), kind=kind, text=text) for alert in alerts
    )


def _status(answer: OutboundResponse | None) -> int | None:
    return answer.status if answer else None


def _mask_answer(channel: Channel, said: str, answer: OutboundResponse | None) -> str:
    """Our sentence and the receiver's answer, truncated, with every secret of the channel
    masked."""
    text = " ".join(part for part in (said, answer.text.strip() if answer else "") if part)
    path = channel.address.split("//", 1)[-1].partition("/")[2]
    for secret in (channel.address, path, channel.secret, channel.secret_previous):
        if len(secret) >= 6:
            text = text.replace(secret, "\u2022\u2022\u2022")
    return text[:MAX_ANSWER_LENGTH]
