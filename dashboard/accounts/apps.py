"""App configuration of accounts."""

import importlib

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Accounts: users, roles and the audit log."""

    name = "dashboard.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Connects the receivers of allauth's signals."""
        for listener in ("audit_signals", "session_expiry"):
            importlib.import_module(f"dashboard.accounts.{listener}")
