"""Words of the pages: those of `dashboard.common.numbers`, and counts, spans and browsers."""

from __future__ import annotations

from dashboard.common.numbers import (
    MINUS,
    SPACE,
    below,
    bound,
    change,
    change_range,
    difference,
    duration,
    is_factor,
    level,
    magnitude,
    mean,
    number,
    percent,
    points,
    signed_size,
    size,
)

__all__ = [
    "MINUS",
    "SPACE",
    "below",
    "bound",
    "browser",
    "change",
    "change_range",
    "difference",
    "duration",
    "format_coarse_duration",
    "is_factor",
    "level",
    "magnitude",
    "mean",
    "number",
    "percent",
    "plural",
    "points",
    "signed_size",
    "size",
]


def format_coarse_duration(seconds: float) -> str:
    """How long something lasts, in its largest unit: 8 s, 6 min, 2 h, 3 days."""
    for limit, unit, factor in ((90, "s", 1), (90 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < limit:
            return f"{max(0, round(seconds / factor))}{SPACE}{unit}"
    return f"{round(seconds / 86400)}{SPACE}days"


_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def browser(agent: str) -> str:
    """Firefox on Linux; a browser calls itself by the names of those before it, so the rarest name
    counts. Empty where none is known."""
    name = next((said for part, said in _BROWSERS if part in agent), "")
    system = next((said for part, said in _SYSTEMS if part in agent), "")
    return f"{name} on {system}" if name and system else name


def plural(count: int, one: str, many: str = "") -> str:
    """1 instance, 6 instances."""
    return f"{number(count)}{SPACE}{one if count == 1 else many or one + 's'}"
