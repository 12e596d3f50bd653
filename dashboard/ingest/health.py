"""Whether what was acknowledged is also folded: the age of the oldest report that waits."""

from dashboard.common.health import Check, how_long
from dashboard.ingest.selectors import inbox_age

FRESH = 60.0
"""Seconds that a report may wait; a worker that is well folds it within three."""


def inbox_check() -> Check:
    """The age of the oldest report that waits to be folded."""
    age = inbox_age()
    if age > FRESH:
        return Check(
            "inbox", False, age, FRESH, "s", f"The oldest report has waited {how_long(age)} to be folded: pages are behind by that."
        )
    return Check("inbox", True, age, FRESH, "s", "Reports are folded as they come.")
