"""Django app configuration of regressions."""

from django.apps import AppConfig


class RegressionsConfig(AppConfig):
    """Regressions: compares each version with its baseline and stores the verdicts."""

    name = "dashboard.regressions"
    label = "regressions"

    def ready(self) -> None:
        """Connects the receiver for merged deployments; it runs inside the fold's transaction."""
        from dashboard.fleet.signals import deployments_joined  # noqa: PLC0415  # models load later
        from dashboard.regressions.receivers import verdicts_repoint  # noqa: PLC0415

        deployments_joined.connect(verdicts_repoint)
