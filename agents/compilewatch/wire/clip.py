"""Text clipping: cuts texts to their limit and removes characters that a database or a UTF-8
encoder refuses.
"""

from __future__ import annotations

from typing import Any

from compilewatch.wire.messages import MAX_TEXT

MAX_DATA_ENTRIES = 64
MAX_DATA_DEPTH = 8
MAX_NUMBER = (1 << 63) - 1
"""Largest integer of a database column.

Python refuses to write a longer one, and the whole window would be lost.
"""


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """Cuts the text at `limit` characters; replaces NUL and lone surrogates."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clip_data(value: Any, depth: int = MAX_DATA_DEPTH) -> Any:
    """Bounds free-form JSON data in depth, width and text.

    Objects of other types are replaced with the name of their type.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -MAX_NUMBER <= value <= MAX_NUMBER else clip(f"<{type(value).__name__}>")
    if isinstance(value, float):
        return value if value - value == 0.0 else str(value)
    if isinstance(value, str):
        return clip(value)
    if depth and isinstance(value, dict):
        pairs = list(value.items())[:MAX_DATA_ENTRIES]
        return {clip(str(key)): clip_data(item, depth - 1) for key, item in pairs}
    if depth and isinstance(value, (list, tuple)):
        return [clip_data(item, depth - 1) for item in value[:MAX_DATA_ENTRIES]]
    return clip(f"<{type(value).__name__}>")
