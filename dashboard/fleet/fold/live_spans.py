"""When a version was live: minutes with data joined across gaps, in whatever order they became
known."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.fleet.fold.facts import Span

GONE_AFTER_MINUTES = 30
"""Minutes without data after which traffic that comes back is a new deployment."""

MAX_AHEAD_MINUTES = 5
"""Minutes after now that a report may cover: what lies further ahead came while this dashboard's
clock was ahead."""


def spans_join(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those joined that lie at most GONE_AFTER apart."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first - joined[-1][1] <= GONE_AFTER_MINUTES:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
