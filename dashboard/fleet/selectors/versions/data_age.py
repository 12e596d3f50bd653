"""Data age: minutes since the newest data of a deployment. This module alone holds the rule."""

from __future__ import annotations

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.instances.instance_states import SILENT_AFTER_S

STALE_AFTER_MINUTES = int(SILENT_AFTER_S // 60) + 2
"""Minutes until data is stale: an instance is silent after three, and a minute is visible after it
ends and is folded."""


def stale_minutes(deployment: Deployment) -> int | None:
    """Return the minutes since the newest data of a deployment; None if the data is current."""
    age = clock.minute_of(clock.unix()) - deployment.last_minute
    return age if age > STALE_AFTER_MINUTES else None
