"""Django's entry for this app."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Facts: what the reports of a fleet say, folded."""

    name = "dashboard.fleet"
    label = "fleet"
