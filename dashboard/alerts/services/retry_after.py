"""Parser of the Retry-After header."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 86400.0


def parse_retry_after(header: str, *, now: float) -> float:
    """Seconds from now, from a number or a date, at most one day; 0 if the header is missing or
    invalid."""
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(moment - now, 0.0), MAX_RETRY_AFTER_S)
