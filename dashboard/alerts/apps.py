"""Django's entry for this app."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts and their deliveries."""

    name = "dashboard.alerts"
    label = "alerts"
