"""Base of the commands that an operator runs against the tables."""

from django.core.management.base import BaseCommand


class OperatorCommand(BaseCommand):
    """A command without Django's system checks: those load every page and double the duration of a
    short command. The tests run the checks, and `manage.py doctor` checks the settings."""

    requires_system_checks = []
