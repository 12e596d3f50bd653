"""Signals: events of the fold, sent within its transaction."""

from django.dispatch import Signal

deployments_joined = Signal()
"""Sent when late data shows that deployments `gone` and `kept` are one. Receivers must move
references from `gone` to `kept`."""
