"""Django app configuration for alerts."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts and their deliveries."""

    name = "dashboard.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Connects the receivers for joined deployments and accepted versions; they run in the
        sender's transaction."""
        from dashboard.alerts.receivers import alerts_repoint, close_accepted_alerts  # noqa: PLC0415
        from dashboard.fleet.signals import deployments_joined  # noqa: PLC0415  # models load after the apps
        from dashboard.regressions.signals import version_accepted  # noqa: PLC0415

        deployments_joined.connect(alerts_repoint)
        version_accepted.connect(close_accepted_alerts)
