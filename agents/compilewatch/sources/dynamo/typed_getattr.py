"""Typed getattr: reads a field of a torch object only if the field has the expected type.

Another torch version may store a different type under the same name."""

from __future__ import annotations

from typing import Any

MAX_NUMBER = 1e18
MAX_LINE_NUMBER = 1 << 31


def get_text(thing: Any, name: str) -> str:
    """Return the text; empty if there is none."""
    value = _value(thing, name)
    return value if isinstance(value, str) else ""


def get_number(thing: Any, name: str) -> float | None:
    """Return the number if its size is plausible; None if there is none."""
    value = _value(thing, name)
    return (
        value
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -MAX_NUMBER < value < MAX_NUMBER
        else None
    )


def get_line_number(thing: Any, name: str) -> int:
    """Return the line number; 0 if there is none."""
    value = get_number(thing, name)
    return int(value) if value is not None and 0 <= value < MAX_LINE_NUMBER else 0


def get_bool(thing: Any, name: str) -> bool | None:
    """Return the bool; None if there is none."""
    value = _value(thing, name)
    return value if isinstance(value, bool) else None


def _value(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of torch may raise
        return None
