"""Spans and directions in the sentence of a verdict; numbers and changes are in the words of
`dashboard.vocabulary.numbers`."""

from __future__ import annotations

from dashboard.vocabulary.numbers import SPACE

__all__ = ["SPACE", "capitalize", "format_duration", "orient_change"]

MIN_REMAINDER = 1e-15
"""As little as is left of a metric that all but ended."""


def orient_change(change: float, worse: int) -> float:
    """A change of the metric itself where less is worse: half the throughput is 50 % lower, not
    twice as bad."""
    return change if worse > 0 else change / max(1.0 + change, MIN_REMAINDER)


def format_duration(minutes: int) -> str:
    """Minutes as people say them."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours}{SPACE}h"] if hours else []
    if rest or not hours:
        parts.append(f"{rest}{SPACE}min")
    return " ".join(parts)


def capitalize(sentence: str) -> str:
    """A sentence starts with a capital, except where it starts with a metric's name."""
    return sentence if sentence.startswith(("p50", "p99")) else sentence[:1].upper() + sentence[1:]
