"""App configuration of the API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """HTTP API: read API, deploy gate and Prometheus metrics."""

    name = "dashboard.api"
    label = "api"
