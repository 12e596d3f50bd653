"""Signals of regressions for later stages, sent inside the sender's transaction."""

from django.dispatch import Signal

version_accepted = Signal()
"""`choice` is a BaselineChoice that accepts a version's level as the new baseline: a person settled
the alerts of the version."""
