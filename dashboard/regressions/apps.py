"""Django's entry for this app."""

from django.apps import AppConfig


class RegressionsConfig(AppConfig):
    """Judges each version against its baseline."""

    name = "dashboard.regressions"
    label = "regressions"

    def ready(self) -> None:
        """Hears of deployments that are joined, inside the fold's transaction."""
        from dashboard.fleet.signals import deployments_joined  # noqa: PLC0415  # models load after the apps
        from dashboard.regressions.receivers import verdicts_repoint  # noqa: PLC0415

        deployments_joined.connect(verdicts_repoint)
