"""App configuration of the fleet facts."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from dashboard.common import clock


class FleetConfig(AppConfig):
    """App configuration: creates the table partitions after each migration."""

    name = "dashboard.fleet"
    label = "fleet"

    def ready(self) -> None:
        """Connect the partition creation, so that a migrated database accepts reports before the
        first sweep."""
        post_migrate.connect(_partitions_make, sender=self)


def _partitions_make(**_: Any) -> None:
    # The import needs the app registry.
    from dashboard.fleet.partitions import partitions_ensure  # noqa: PLC0415

    partitions_ensure(today=int(clock.unix() // 86400))
