"""Django's entry for this app."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts and their deliveries."""

    name = "dashboard.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Hears of deployments that are joined, inside the fold's transaction."""
        from dashboard.alerts.joined import alerts_repoint  # noqa: PLC0415
        from dashboard.fleet.signals import deployments_joined  # noqa: PLC0415  # models load after the apps

        deployments_joined.connect(alerts_repoint)
