"""Numbers of a verdict as people read them."""

from __future__ import annotations

SPACE = "\u00a0"
MINUS = "\u2212"
NOTHING = 1e-15
"""As little as is left of a metric that all but ended."""


def own(change: float, worse: int) -> float:
    """A change of the metric itself where less is worse: half the throughput is 50 % lower, not twice as bad."""
    return change if worse > 0 else change / max(1.0 + change, NOTHING)


def percent(ratio: float | None) -> str:
    """A share or change with its unit."""
    return f"{number(ratio or 0.0)}{SPACE}%"


def number(ratio: float) -> str:
    """A ratio in percent, with the digits that mean something and a real minus."""
    value = abs(ratio) * 100
    text = f"{value:.0f}" if value >= 2.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2g}"
    text = text.removesuffix(".0")
    return f"{MINUS}{text}" if ratio < 0 and text != "0" else text


def duration(minutes: int) -> str:
    """Minutes as people say them."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours}{SPACE}h"] if hours else []
    if rest or not hours:
        parts.append(f"{rest}{SPACE}min")
    return " ".join(parts)


def capitalised(sentence: str) -> str:
    """A sentence starts with a capital, except where it starts with a metric's name."""
    return sentence if sentence.startswith(("p50", "p99")) else sentence[:1].upper() + sentence[1:]
