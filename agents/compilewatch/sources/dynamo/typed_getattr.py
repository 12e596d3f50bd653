"""One field of an object that torch made, read only if it is of the type we know: another torch may hold something else under the name."""

from __future__ import annotations

from typing import Any

LARGEST = 1e18
LAST_LINE = 1 << 31


def text(thing: Any, name: str) -> str:
    """A text; empty where there is none."""
    value = _value(thing, name)
    return value if isinstance(value, str) else ""


def number(thing: Any, name: str) -> float | None:
    """A number of a size that means something; None where there is none."""
    value = _value(thing, name)
    return (
        value
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -LARGEST < value < LARGEST
        else None
    )


def line_number(thing: Any, name: str) -> int:
    """The number of a line; 0 where there is none."""
    value = number(thing, name)
    return int(value) if value is not None and 0 <= value < LAST_LINE else 0


def truth(thing: Any, name: str) -> bool | None:
    """Yes or no; None where it does not say."""
    value = _value(thing, name)
    return value if isinstance(value, bool) else None


def _value(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of torch's own may fail
        return None
