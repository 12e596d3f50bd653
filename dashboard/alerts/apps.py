"""Django's entry for this app."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts and their deliveries."""

    name = "dashboard.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Hears of deployments that are joined and of versions that are accepted, inside the
        transaction of either."""
        from dashboard.alerts.joined import alerts_repoint  # noqa: PLC0415
        from dashboard.alerts.receivers import close_accepted_alerts  # noqa: PLC0415
        from dashboard.fleet.signals import deployments_joined  # noqa: PLC0415  # models load after the apps
        from dashboard.regressions.signals import version_accepted  # noqa: PLC0415

        deployments_joined.connect(alerts_repoint)
        version_accepted.connect(close_accepted_alerts)
