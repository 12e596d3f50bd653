"""Django's entry for this app."""

from django.apps import AppConfig


class UiConfig(AppConfig):
    """The pages; the last stage, imported by no one."""

    name = "dashboard.ui"
    label = "ui"
