"""The ranges a page can show, and the part of its address that says which."""

from dataclasses import dataclass

from django.http import QueryDict

from dashboard.common import clock
from dashboard.fleet.selectors.fleet_page import Window


@dataclass(frozen=True)
class Range:
    """One choice: its name in the address, its words, its bin and how many bins, in minutes."""

    key: str
    label: str
    bin: int
    bins: int


RANGES = (
    Range("1h", "1\u00a0h", 1, 60),
    Range("6h", "6\u00a0h", 5, 72),
    Range("24h", "24\u00a0h", 20, 72),
    Range("7d", "7\u00a0d", 120, 84),
)
DEFAULT = RANGES[2]


def range_of(query: QueryDict) -> Range:
    """The range the address asks for; an unknown one is the default."""
    return next((one for one in RANGES if one.key == query.get("range")), DEFAULT)


def window_of(chosen: Range) -> Window:
    """The range as minutes up to now, its bins on round minutes."""
    end = clock.minute_of(clock.unix())
    start = (end // chosen.bin - chosen.bins + 1) * chosen.bin
    return Window(start=start, end=end, bin=chosen.bin)


def with_query(query: QueryDict, **changes: str) -> str:
    """The address's query with some values changed; an empty value removes it."""
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return "?" + changed.urlencode()
