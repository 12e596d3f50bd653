"""Typed getattr: reads a field of a torch object only if the field has the expected type.

Another torch version may store a different type under the same name."""

from __future__ import annotations

from typing import Any

LARGEST = 1e18
LAST_LINE = 1 << 31


def text(thing: Any, name: str) -> str:
    """Return the text; empty if there is none."""
    value = _value(thing, name)
    return value if isinstance(value, str) else ""


def number(thing: Any, name: str) -> float | None:
    """Return the number if its size is plausible; None if there is none."""
    value = _value(thing, name)
    return (
        value
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -LARGEST < value < LARGEST
        else None
    )


def line_number(thing: Any, name: str) -> int:
    """Return the line number; 0 if there is none."""
    value = number(thing, name)
    return int(value) if value is not None and 0 <= value < LAST_LINE else 0


def truth(thing: Any, name: str) -> bool | None:
    """Return the bool; None if there is none."""
    value = _value(thing, name)
    return value if isinstance(value, bool) else None


def _value(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of torch may raise
        return None
