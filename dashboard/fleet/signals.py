"""What later stages may want to hear of, inside the fold's transaction."""

from django.dispatch import Signal

deployments_joined = Signal()
"""`gone` and `kept` are two deployments that late data shows to be one: whatever points at `gone`
has to point at `kept` now."""
