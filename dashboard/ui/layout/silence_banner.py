"""The one banner over a page whose instances stopped reporting together."""

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
    """What stopped, when the last of them reported, and the alert that says so, where one is
    open."""

    title: str
    last_at: datetime
    alert: int | None


def silence_banner(
    silence: Silence | None, alerts: Iterable[Alert], *, model_id: int | None = None, name: str = ""
) -> SilenceBanner | None:
    """Of the fleet, or of one model; after half an hour, when the instances are listed no longer,
    from the alert alone."""
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
