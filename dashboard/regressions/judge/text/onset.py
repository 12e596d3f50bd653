"""Onset text: describes in a phrase when a change began."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.regressions.judge.result import Evidence

AT_DEPLOYMENT_MINUTES = 30
"""Minutes after a deployment in which the first comparison still shows what the deployment did."""


def describe_start(row: Evidence, deployed_minute: int, say_minute: Callable[[int], str]) -> str:
    """The phrase with a leading space or comma; empty if the start is unknown."""
    if row.since is None:
        return ""
    if row.from_start:
        if row.since - deployed_minute <= AT_DEPLOYMENT_MINUTES:
            return " since the deployment"
        return f" since {say_minute(row.since)} or earlier"
    if row.onset and row.onset[0] < row.onset[1]:
        earliest, latest = map(say_minute, row.onset)
        return f", starting between {earliest} and {latest}"
    return f" since {say_minute(row.since)}"


def started_together(one: Evidence, other: Evidence) -> bool:
    """True if both changes may have begun at the same time."""
    if one.onset and other.onset:
        return one.onset[0] <= other.onset[1] and other.onset[0] <= one.onset[1]
    return one.since == other.since or (one.from_start and other.from_start)
