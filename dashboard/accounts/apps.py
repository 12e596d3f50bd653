"""Django's entry for this app."""

import importlib

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People: users, roles, audit."""

    name = "dashboard.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Begins to listen to what allauth tells."""
        for listener in ("audit_signals", "session_expiry"):
            importlib.import_module(f"dashboard.accounts.{listener}")
