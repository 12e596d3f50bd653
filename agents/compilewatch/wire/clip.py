"""Text fit for the wire: cut to its limit, without what a database or a UTF-8 encoder refuses."""

from __future__ import annotations

from typing import Any

from compilewatch.wire.messages import MAX_TEXT

MAX_DATA_ENTRIES = 64
MAX_DATA_DEPTH = 8
MAX_NUMBER = (1 << 63) - 1
"""What a database column holds; a longer one Python refuses to write, and the whole window would be lost with it."""


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """The text cut at `limit` characters; NUL and lone surrogates become the replacement character."""
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
    """Free-form data of JSON's own types, bounded in depth, width and text; of anything else only its type's name leaves."""
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
