"""How old the newest data of a deployment is, where that is too old to speak of now; the only place
with that rule."""

from __future__ import annotations

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.instances.instance_states import SILENT_AFTER_S

STALE_AFTER_MINUTES = int(SILENT_AFTER_S // 60) + 2
"""Minutes: an instance is silent after three, and a minute has data once it is over and folded."""


def stale_minutes(deployment: Deployment) -> int | None:
    """Minutes since the newest data of a deployment; None while data still arrives as usual."""
    age = clock.minute_of(clock.unix()) - deployment.last_minute
    return age if age > STALE_AFTER_MINUTES else None
