"""Unicode safety: writes invisible and bidirectional characters of foreign text as their codes, so
nothing is lost."""

from __future__ import annotations

import re

_HIDDEN = (
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Controls, directional marks and overrides, zero-width characters, fillers and variation
selectors."""

_HIDDEN_IN_TEXT = re.compile(f"[{_HIDDEN}]")
_HIDDEN_IN_NAME = re.compile(f"[{_HIDDEN}\t\n]")


def visible_name(name: str) -> str:
    r"""Escapes a name for one line: `a\\u202eb` becomes a<U+202E>b. Two names that look equal are
    thus equal."""
    return name if name.isascii() and name.isprintable() else _HIDDEN_IN_NAME.sub(_code, name)


def visible_text(text: str) -> str:
    """Escapes a text of several lines."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN_IN_TEXT.sub(_code, text.replace("\r\n", "\n"))


def _code(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"
