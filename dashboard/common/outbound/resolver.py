"""Name resolver: one lookup within a timeout."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable

Resolver = Callable[[str, int, float], list[str]]


def resolve_name(host: str, port: int, seconds: float) -> list[str]:
    """Every address of the name in order of preference. Empty if the name has none or the lookup
    exceeds `seconds`."""
    found: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    # getaddrinfo has no timeout; a lookup that hangs continues on its own thread.
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
