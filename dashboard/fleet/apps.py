"""Django's entry for this app."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from dashboard.common import clock


class FleetConfig(AppConfig):
    """Facts: what the reports of a fleet say, folded."""

    name = "dashboard.fleet"
    label = "fleet"

    def ready(self) -> None:
        """A migrated database can take reports at once, without waiting for the first sweep."""
        post_migrate.connect(_partitions_make, sender=self)


def _partitions_make(**_: Any) -> None:
    from dashboard.fleet.partitions import partitions_ensure  # noqa: PLC0415  # the database's module loads after the apps

    partitions_ensure(today=int(clock.unix() // 86400))
