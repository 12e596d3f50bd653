"""Sends what is owed: claim by lease, send outside any transaction, mark. A crash in between sends
once more, under the same id.

Channels do not wait for one another; within one there is one message under way, and the next
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
"""How far the clocks of machines differ at most. Nothing that was not tried yet is put off for
longer than that."""
MAX_PARALLEL_CHANNELS = 16
"""Channels that one worker sends to at the same time."""
MAX_OVERTIME_S = 30.0
"""Seconds that the slowest kind of channel may take: so much longer than its time a worker is held,
and no more."""
GRACE_S = 2.0
"""Seconds after its own limit that a channel is given up from outside."""
POLL_INTERVAL_S = 0.5
"""Seconds after which it is looked whether other channels have something, while those under way
take their time."""
RETRY_DELAYS_S = (0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
JITTER_RATIO = 0.2
MAX_ANSWER_LENGTH = 500
MAX_NOT_FOUND_TRIES = 4
"""Tries after which a 404 is believed: half an hour, in which a receiver that is being replaced
comes back."""


@dataclass(frozen=True)
class Claim:
    """A delivery that is ours to try until the lease ends."""

    delivery: Delivery
    channel: Channel
    attempt: DeliveryAttempt


@dataclass(frozen=True)
class DeliveryResult:
    """What came of a try."""

    delivered: bool
    text: str
    status: int | None = None
    permanent: bool = False
    disables: bool = False
    wait: float = 0.0


def deliveries_send(*, seconds: float = 10.0) -> int:
    """Tries everything that is due for about so long, each channel on its own; returns how many
    were delivered.

    A thread holds one message to one channel and knows no database, so a slow channel keeps nobody
    waiting but itself. While the last ones take their time the others go on, as far as they are
    sure to be done by then."""
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
    """Anything until the time is over; after that only what is sure to be done before a channel
    that is waited for has to be."""
    now = time.monotonic()
    if now < stop:
        return delivery_claim()
    return delivery_claim(within=stop + MAX_OVERTIME_S - now) if waits else None


def delivery_claim(*, within: float = MAX_OVERTIME_S) -> Claim | None:
    """The next delivery that is due and nobody else's, of a kind that takes at most so many
    seconds.

    Per channel only the oldest one may go, and no test that waits holds up an alert."""
    quick = [kind for kind, one in CHANNELS.items() if one.seconds <= within]
    for channel_id in (
        _due()
        .filter(channel__kind__in=quick)
        .order_by("next_attempt_at", "pk")
        .values_list("channel_id", flat=True)
    ):
        with write_transaction():
            # Whoever holds the channel's row is choosing its next delivery just now: it is not
            # ours.
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
    """Sends once; whatever goes wrong is a result, never an exception."""
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
        return DeliveryResult(False, f"It was not done within {significant(kind.seconds)} s.")
    except Exception as error:
        logger.exception("delivery %s could not be built or sent", delivery.message_id)
        return DeliveryResult(
            False, f"compilewatch failed ({type(error).__name__}); its log says more."
        )
    return DeliveryResult(True, _mask_answer(channel, "", answer), answer.status)


def delivery_mark(claim: Claim, result: DeliveryResult) -> None:
    """Writes down what came of a try, and what happens next."""
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
    """Seconds until the next try after so many; spread by the message's id, so that a storm does
    not come back as one."""
    spread = random.Random(f"{message_id} {attempts}").uniform(1 - JITTER_RATIO, 1 + JITTER_RATIO)
    return RETRY_DELAYS_S[attempts] * spread


def _due() -> QuerySet[Delivery]:
    """What may go now. A moment that was put off while the clock was ahead is no reason to wait: by
    hours, or for ever."""
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
        # A channel waits for longer than its pace where it was asked to: then a message that failed
        # waits as well.
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
    """A line in the time line of every alert that the message was about."""
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
    """Our sentence and their answer, cut, with every secret of the channel masked."""
    text = " ".join(part for part in (said, answer.text.strip() if answer else "") if part)
    path = channel.address.split("//", 1)[-1].partition("/")[2]
    for secret in (channel.address, path, channel.secret, channel.secret_previous):
        if len(secret) >= 6:
            text = text.replace(secret, "\u2022\u2022\u2022")
    return text[:MAX_ANSWER_LENGTH]
