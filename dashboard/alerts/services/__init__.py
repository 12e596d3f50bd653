"""Writes alerts, channels and deliveries; each file beside this one holds one part of it."""

from dashboard.alerts.services.actions import AlertActionError, alert_acknowledge, alert_dismiss, alert_resolve, alert_snooze
from dashboard.alerts.services.channels import channel_create, channel_disable, channel_enable, channel_rotate_secret, channel_test
from dashboard.alerts.services.correlate import groups_form
from dashboard.alerts.services.deliver import deliveries_send
from dashboard.alerts.services.digest import held_release
from dashboard.alerts.services.redeliver import deliveries_replay, delivery_replay
from dashboard.alerts.services.reminders import reminders_owe
from dashboard.alerts.services.rollback_detection import rollbacks_watch
from dashboard.alerts.services.rules import maintenance_add, maintenance_end, rule_add, rule_remove, time_zone_set
from dashboard.alerts.services.silence import silences_watch
from dashboard.alerts.services.sync import alerts_sweep

__all__ = [
    "AlertActionError",
    "alert_acknowledge",
    "alert_dismiss",
    "alert_resolve",
    "alert_snooze",
    "alerts_sweep",
    "channel_create",
    "channel_disable",
    "channel_enable",
    "channel_rotate_secret",
    "channel_test",
    "deliveries_replay",
    "deliveries_send",
    "delivery_replay",
    "groups_form",
    "held_release",
    "maintenance_add",
    "maintenance_end",
    "reminders_owe",
    "rollbacks_watch",
    "rule_add",
    "rule_remove",
    "silences_watch",
    "time_zone_set",
]
