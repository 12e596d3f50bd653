"""Data of Settings > Notifications: rules, maintenance, channels, and failed notifications."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, OuterRef, Subquery, When

from dashboard.alerts.models import Channel, Delivery, DeliveryState, MaintenanceWindow, Rule
from dashboard.alerts.services.enqueue import get_time_zone
from dashboard.alerts.services.redeliver import OBSOLETE_MESSAGES
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project

MAX_DELIVERIES_LISTED = 50


@dataclass(frozen=True)
class DeadDeliveries:
    """Failed notifications of one channel: all of them, and those that are still relevant."""

    channel_id: int
    name: str
    enabled: bool
    count: int
    worth: int


@dataclass(frozen=True)
class RulesData:
    """Data of the page."""

    project: Project
    channels: list[Channel]
    rules: list[Rule]
    windows: list[MaintenanceWindow]
    given_up: list[Delivery]
    given_up_in: list[DeadDeliveries]
    held: int

    @property
    def given_up_count(self) -> int:
        """Number of failed notifications, listed or not."""
        return sum(one.count for one in self.given_up_in)

    @property
    def sent_at_once(self) -> list[DeadDeliveries]:
        """Channels with several notifications to resend."""
        return [one for one in self.given_up_in if one.enabled and one.worth > 1]

    @property
    def off(self) -> list[Channel]:
        """Disabled channels, with the reason."""
        return [channel for channel in self.channels if not channel.enabled]

    @property
    def now_there(self) -> datetime:
        """Current time in the project's time zone."""
        return clock.now().astimezone(get_time_zone(self.project))


def read_rules_data(*, project: Project, channels: list[Channel]) -> RulesData:
    """A fixed number of queries in addition to that for the channels."""
    dead = for_project(Delivery, project).filter(state=DeliveryState.DEAD)
    listed = dead.annotate(outlived=Case(When(OBSOLETE_MESSAGES, then=True), default=False))
    by_channel = dead.values_list("channel_id", "channel__name", "channel__enabled").order_by(
        "channel__name", "channel_id"
    )
    return RulesData(
        project=project,
        channels=sorted(channels, key=lambda channel: (channel.name, channel.pk)),
        rules=list(
            for_project(Rule, project)
            .select_related("channel", "escalate_to")
            .order_by("channel__name", "pk")
        ),
        windows=list(
            for_project(MaintenanceWindow, project)
            .filter(ends_at__gt=clock.now())
            .order_by("starts_at", "pk")
        ),
        given_up=list(
            listed.select_related("channel", "alert")
            .defer("facts")
            .order_by("-created_at", "-pk")[:MAX_DELIVERIES_LISTED]
        ),
        given_up_in=[
            DeadDeliveries(*row)
            for row in by_channel.annotate(
                count=Count("pk"), worth=Count("pk", filter=~OBSOLETE_MESSAGES)
            )
        ],
        held=for_project(Delivery, project).filter(state=DeliveryState.HELD).count(),
    )


def list_channels_with_last_delivery(*, project: Project) -> list[tuple[Channel, Delivery | None]]:
    """Channels in order of creation, each with its latest notification."""
    newest = Delivery.objects.filter(channel=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    channels = list(
        for_project(Channel, project).annotate(newest=Subquery(newest)).order_by("created_at", "pk")
    )
    last = Delivery.objects.in_bulk([channel.newest for channel in channels if channel.newest])
    return [(channel, last.get(channel.newest)) for channel in channels]
