"""Django's entry for this app."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """What stands under every stage: clock, errors, job slots, the one outbound client."""

    name = "dashboard.common"
    label = "common"
