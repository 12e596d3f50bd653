"""Data of the Setup page: keys and the first report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from dashboard.common import clock
from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_states import instance_state
from dashboard.ingest.models import Sender
from dashboard.projects.models import Key, Project
from dashboard.projects.selectors import for_project, list_live_keys

RECENT_ARRIVAL_AGE = timedelta(minutes=10)


@dataclass(frozen=True)
class Arrival:
    """The latest report; `instance` is set after the report is processed."""

    received_at: datetime | None
    instance: Instance | None
    senders: int

    @property
    def name(self) -> str:
        """Display name of the process that reported last; empty if unknown."""
        return process_name(self.instance) if self.instance else ""

    @property
    def starting(self) -> bool:
        """True if the process has neither called nor compiled anything yet."""
        return (
            self.instance is not None
            and instance_state(self.instance, clock.now()) == InstanceState.STARTING
        )

    @property
    def lately(self) -> bool:
        """True if the latest report arrived within the last minutes."""
        return (
            self.instance is not None
            and clock.now() - self.instance.last_seen_at < RECENT_ARRIVAL_AGE
        )


def read_arrival(*, project: Project) -> Arrival:
    """State of the first report, in three queries."""
    senders = for_project(Sender, project)
    newest = senders.order_by("-last_seen_at").first()
    folded = (
        for_project(Instance, project)
        .select_related("model", "version")
        .order_by("-last_seen_at")
        .first()
    )
    return Arrival(
        newest.last_seen_at if newest else None, folded, senders.count() if newest else 0
    )


def query_ingest_keys(*, project: Project) -> QuerySet[Key]:
    """Active keys that send reports; Settings lists the other keys."""
    return list_live_keys(project).filter(kind="ing").select_related("created_by")
