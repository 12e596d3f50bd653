"""Django's entry for this app."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """The read API, the deploy gate and metrics."""

    name = "dashboard.api"
    label = "api"
