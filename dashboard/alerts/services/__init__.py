"""Writes alerts, channels and deliveries; each module of this package covers one part."""

from dashboard.alerts.services.actions import (
    AlertActionError,
    alert_acknowledge,
    alert_dismiss,
    alert_note,
    alert_resolve,
    alert_snooze,
)
from dashboard.alerts.services.channels import (
    ChannelError,
    channel_create,
    channel_disable,
    channel_enable,
    channel_rotate_secret,
    channel_test,
)
from dashboard.alerts.services.correlate import alerts_correlate
from dashboard.alerts.services.deliver import deliveries_send
from dashboard.alerts.services.digest import release_held_deliveries
from dashboard.alerts.services.redeliver import redeliver_channel_messages, redeliver_message
from dashboard.alerts.services.reminders import enqueue_reminders
from dashboard.alerts.services.rollback_detection import rollbacks_watch
from dashboard.alerts.services.rules import (
    maintenance_add,
    maintenance_end,
    rule_add,
    rule_remove,
    time_zone_set,
)
from dashboard.alerts.services.silence import silences_watch
from dashboard.alerts.services.sync import alerts_sync
from dashboard.alerts.services.undo import acceptance_undo, alert_undo

__all__ = [
    "AlertActionError",
    "ChannelError",
    "acceptance_undo",
    "alert_acknowledge",
    "alert_dismiss",
    "alert_note",
    "alert_resolve",
    "alert_snooze",
    "alert_undo",
    "alerts_correlate",
    "alerts_sync",
    "channel_create",
    "channel_disable",
    "channel_enable",
    "channel_rotate_secret",
    "channel_test",
    "deliveries_send",
    "enqueue_reminders",
    "maintenance_add",
    "maintenance_end",
    "redeliver_channel_messages",
    "redeliver_message",
    "release_held_deliveries",
    "rollbacks_watch",
    "rule_add",
    "rule_remove",
    "silences_watch",
    "time_zone_set",
]
