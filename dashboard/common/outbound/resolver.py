"""Looks a name up once, within a time limit."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable

Resolver = Callable[[str, int, float], list[str]]


def resolve_name(host: str, port: int, seconds: float) -> list[str]:
    """Every address of the name, in the order to try them; none when it has none or the look-up
    takes too long."""
    found: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    # getaddrinfo takes no time limit; a look-up that hangs is left to end by itself.
    threading.Thread(target=lambda: found.put(_look_up(host, port)), daemon=True).start()
    try:
        return found.get(timeout=seconds)
    except queue.Empty:
        return []


def _look_up(host: str, port: int) -> list[str]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))
