"""Client sockets: finds the sockets of this process by their peer, since granian does not expose
them."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from dashboard.serving.request_limits import SEND_BUFFER_BYTES, STALL_TIMEOUT_MS


def limit_listeners() -> None:
    """Sets limits on the listeners. Each new connection has a small kernel buffer, and ends when
    its client stalls."""
    for one in _iter_sockets():
        if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.family != socket.AF_UNIX:
            limit_listener(one)


def limit_listener(listener: socket.socket) -> None:
    """Sets the limits of one listener. Without TCP_USER_TIMEOUT, only the minimum rate ends a
    connection."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALL_TIMEOUT_MS)


def disconnect_clients(addresses: set[tuple[str, int]]) -> None:
    """Ends the connections of these clients and discards their unsent data."""
    for one in _iter_sockets():
        with contextlib.suppress(OSError):
            if one.getpeername()[:2] in addresses:
                one.shutdown(socket.SHUT_RDWR)


def _iter_sockets() -> Iterator[socket.socket]:
    for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as one:
                    yield one
