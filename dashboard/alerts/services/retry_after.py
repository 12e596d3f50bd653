"""Reads a Retry-After header."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 86400.0


def parse_retry_after(header: str, *, now: float) -> float:
    """Seconds or a date, as seconds from now, at most a day; 0 when there is none or it makes no
    sense."""
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(moment - now, 0.0), MAX_RETRY_AFTER_S)
