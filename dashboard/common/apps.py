"""App configuration of the foundations."""

from django.apps import AppConfig

from dashboard.common.numeric_loaders import register_numeric_loaders
from dashboard.common.telemetry import telemetry_start


class CommonConfig(AppConfig):
    """Foundations of every stage: clock, errors, job slots, outbound HTTP client."""

    name = "dashboard.common"
    label = "common"

    def ready(self) -> None:
        """Starts telemetry if configured, and registers loaders that read sums alike on both
        databases."""
        telemetry_start()
        register_numeric_loaders()
