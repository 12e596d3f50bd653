"""Says of an alert that ended before anybody could know whether what it told of is gone that it is, or that it is not; once."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, OuterRef

from dashboard.alerts.models import Alert, AlertEvent, AlertOutcome, AlertState, DeliveryKind, EventKind
from dashboard.alerts.services.gone import TOO_EARLY, gone_words, places_taken
from dashboard.alerts.services.owe import messages_owe
from dashboard.alerts.services.transition import event_add, project_hold
from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.fleet.models import Deployment

ASKED_FOR = timedelta(days=1)
"""After so long nobody waits for it any more."""


def gone_follow() -> int:
    """Looks at the alerts that ended too early to tell; returns of how many it told."""
    later = AlertEvent.objects.filter(alert=OuterRef("alert"), kind=EventKind.EVIDENCE, pk__gt=OuterRef("pk"))
    ends = AlertEvent.objects.filter(~Exists(later), kind=EventKind.RESOLVED, text__contains=TOO_EARLY, at__gte=clock.now() - ASKED_FOR)
    found = ends.filter(alert__state=AlertState.RESOLVED).values_list("alert_id", "alert__project_id")
    return sum(_told(alert_id, project_id) for alert_id, project_id in sorted(set(found)))


def _told(alert_id: int, project_id: int) -> bool:
    alert = Alert.objects.select_related("deployment__model", "deployment__version", "verdict").get(pk=alert_id)
    by = _by(alert)
    words = gone_words(alert=alert, by=by) if by is not None else ""
    if not words or TOO_EARLY in words:
        return False
    with write_transaction():
        project_hold(project_id)
        last = alert.events.order_by("pk").last()
        if last is None or last.kind == EventKind.EVIDENCE:
            return False  # another worker was faster
        event = event_add(alert=alert, kind=EventKind.EVIDENCE, text=words)
        messages_owe(alert=alert, event=event, kind=DeliveryKind.RESOLVED, verdict=alert.verdict, news=words)
    return True


def _by(alert: Alert) -> Deployment | None:
    """What took the version's place when the alert ended, or the version itself."""
    if alert.outcome == AlertOutcome.RECOVERED:
        return alert.deployment
    earlier, later = places_taken(alert.deployment)
    return earlier if alert.outcome == AlertOutcome.ROLLED_BACK else later
