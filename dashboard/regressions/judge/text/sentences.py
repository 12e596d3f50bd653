"""Sentences: the direction of a change and the capital at the start."""

from __future__ import annotations

from collections.abc import Sequence

MIN_REMAINDER = 1e-15
"""The remainder of a metric that all but ended."""


def orient_change(change: float, worse: int) -> float:
    """Converts a change to the metric itself if less is worse: half the throughput is 50% lower,
    not twice as bad."""
    return change if worse > 0 else change / max(1.0 + change, MIN_REMAINDER)


def list_words(words: Sequence[str]) -> str:
    """`p50, p99 and throughput`."""
    *some, last = words or ("",)
    return f"{', '.join(some)} and {last}" if some else last


def capitalize(sentence: str) -> str:
    """Capitalizes the start of a sentence, except if the sentence starts with a metric's name."""
    return sentence if sentence.startswith(("p50", "p99")) else sentence[:1].upper() + sentence[1:]
