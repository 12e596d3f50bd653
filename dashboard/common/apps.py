"""Django's entry for this app."""

from django.apps import AppConfig

from dashboard.common.numeric_loaders import register_numeric_loaders
from dashboard.common.telemetry import telemetry_start


class CommonConfig(AppConfig):
    """What stands under every stage: clock, errors, job slots, the one outbound client."""

    name = "dashboard.common"
    label = "common"

    def ready(self) -> None:
        """Begins to tell Sentry and OpenTelemetry, where their variables ask for it, and reads sums
        alike on both databases."""
        telemetry_start()
        register_numeric_loaders()
