"""Django app of the pages. It is the last stage: no other app imports it."""

from django.apps import AppConfig


class UiConfig(AppConfig):
    """The pages. They are the last stage: no other app imports them."""

    name = "dashboard.ui"
    label = "ui"
