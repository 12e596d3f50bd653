"""What later stages may want to hear of, inside the transaction of whoever says it."""

from django.dispatch import Signal

version_accepted = Signal()
"""`choice` is a BaselineChoice that accepts a version as the new normal: what was said against the
version is settled by a person."""
