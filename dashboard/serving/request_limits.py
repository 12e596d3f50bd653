"""Request limits: time for the head, a minimum rate for body and answer, and memory for all
requests."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from compilewatch.wire.messages import MAX_WIRE_BYTES
from django.conf import settings

from dashboard.ingest.body_decoder import RefusalError

GRACE_SECONDS = 15.0
MIN_BYTES_PER_SECOND = 1024
"""Grace and minimum rate of a transfer. A body or an answer may pause for the grace; on average it
moves at this rate. A report of 64 kB within 60 s is accepted."""

MAX_BODY_BYTES = max(MAX_WIRE_BYTES, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
MAX_KEYED_BODY_BYTES, MAX_ANONYMOUS_BODY_BYTES, MAX_RESPONSE_BYTES = 32 << 20, 16 << 20, 64 << 20
"""Limits per process: unfinished bodies with a valid key, unfinished bodies of others, and answers
that wait for their readers."""

SEND_BUFFER_BYTES = 128 << 10
"""Bytes of an answer that the kernel buffers per client (the kernel doubles the number). The rest
waits in this process and counts there."""

STALL_TIMEOUT_MS = 30_000
"""Time after which the kernel ends a connection whose client reads nothing."""


def allowed_seconds(moved: int) -> float:
    """Seconds that a transfer may take to move `moved` bytes."""
    return GRACE_SECONDS + moved / MIN_BYTES_PER_SECOND


def parse_content_length(headers: dict[str, Any]) -> int:
    """The length of a body, from the WSGI variables of the head. Raises RefusalError for a body
    without a length, or over the limit."""
    text = headers.get("CONTENT_LENGTH") or ""
    if not text and headers.get("HTTP_TRANSFER_ENCODING"):
        raise RefusalError("no_length", "The request has no Content-Length.")
    if text and not (text.isascii() and text.isdecimal()):
        raise RefusalError("bad_request", "Content-Length is not a number.")
    if len(text) > 12 or int(text or 0) > MAX_BODY_BYTES:
        raise RefusalError("too_large", f"The body is larger than {MAX_BODY_BYTES} bytes.")
    return int(text or 0)


class ByteBudget:
    """Memory budget shared by transfers. At the limit, the oldest transfer is evicted. Not
    thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit, self.held = limit, 0
        self._holders: dict[Hashable, tuple[int, Callable[[], None]]] = {}

    def take(self, holder: Hashable, size: int, evict: Callable[[], None]) -> None:
        """Adds `size` bytes to the share of a transfer; `evict` ends the transfer."""
        self._holders[holder] = self._holders.get(holder, (0, evict))[0] + size, evict
        self.held += size
        while self.held > self._limit:
            first = next(iter(self._holders))
            evict = self._holders[first][1]
            self.release(first)
            evict()

    def release(self, holder: Hashable) -> None:
        """Releases the share of a finished transfer."""
        self.held -= self._holders.pop(holder, (0,))[0]
