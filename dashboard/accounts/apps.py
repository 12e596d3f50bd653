"""Django's entry for this app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People: users, roles, audit."""

    name = "dashboard.accounts"
    label = "accounts"
