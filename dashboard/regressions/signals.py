"""Signals of regressions for later stages, sent inside the sender's transaction."""

from django.dispatch import Signal

version_accepted = Signal()
"""`choice` is a BaselineChoice that accepts a version as the new normal: a person settled the
alerts of the version."""
