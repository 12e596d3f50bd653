"""Live spans: minutes with data, joined across short gaps, in any order of arrival."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.fleet.fold.facts import Span

GONE_AFTER_MINUTES = 30
"""Minutes without data after which returning traffic is a new deployment."""

MAX_AHEAD_MINUTES = 5
"""Limit of minutes in the future that a report may cover. Later minutes result from a server clock
that was ahead."""


def spans_join(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order; spans at most GONE_AFTER_MINUTES apart are joined."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first - joined[-1][1] <= GONE_AFTER_MINUTES:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
