"""Django's entry for this app."""

from django.apps import AppConfig


class RegressionsConfig(AppConfig):
    """Judges each version against its baseline."""

    name = "dashboard.regressions"
    label = "regressions"
