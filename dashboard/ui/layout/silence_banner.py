"""Banner of a page whose instances stopped reporting together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.alerts.services.silence import silence_title
from dashboard.common import clock
from dashboard.fleet.metrics.silence import Silence


@dataclass(frozen=True)
class SilenceBanner:
    """The affected instances, the time of their last report, and the open alert, if any."""

    title: str
    last_at: datetime
    alert: int | None


def silence_banner(
    silence: Silence | None, alerts: Iterable[Alert], *, model_id: int | None = None, name: str = ""
) -> SilenceBanner | None:
    """The banner of the fleet or of one model. After half an hour, when the instances are no longer
    listed, it uses only the alert."""
    alert = next((one for one in alerts if _is_about(one, model_id)), None)
    number = alert.number if alert else None
    if silence is not None:
        return SilenceBanner(silence_title(silence, name), clock.at(silence.last), number)
    return SilenceBanner(alert.title, alert.opened_at, number) if alert else None


def _is_about(alert: Alert, model_id: int | None) -> bool:
    if alert.state == AlertState.RESOLVED:
        return False
    if model_id is None:
        return alert.cause == AlertCause.FLEET_SILENCE
    return alert.cause == AlertCause.SILENCE and alert.deployment.model_id == model_id
