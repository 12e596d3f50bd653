"""Deadline socket: one deadline over all reads and writes, and a bounded number of bytes."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from typing import Any


class ResponseTooLargeError(Exception):
    """The other side sent more bytes than the allowance."""


class BoundedSocket:
    """Bounded socket with the interface that http.client uses."""

    def __init__(
        self, connection: socket.socket, left: Callable[[], float], *, allowance: int
    ) -> None:
        self._connection = connection
        self._left = left
        self._allowance = allowance

    def sendall(self, data: bytes | bytearray | memoryview) -> None:
        """Sends everything or raises TimeoutError. A slow peer gets only the remaining time."""
        rest = memoryview(data)
        while rest:
            self._wait()
            rest = rest[self._connection.send(rest) :]

    def receive_into(self, buffer: memoryview) -> int:
        """Reads the available bytes within deadline and allowance. Raises ResponseTooLargeError."""
        if self._allowance <= 0:
            raise ResponseTooLargeError
        self._wait()
        count = self._connection.recv_into(buffer[: self._allowance])
        self._allowance -= count
        return count

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """The reader through which http.client reads the answer."""
        return io.BufferedReader(_Reader(self), buffer_size=4096)

    def close(self) -> None:
        """Does nothing: the owner of the connection closes it."""

    def _wait(self) -> None:
        left = self._left()
        if left <= 0.001:
            raise TimeoutError
        self._connection.settimeout(left)


class _Reader(io.RawIOBase):
    def __init__(self, connection: BoundedSocket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.receive_into(memoryview(buffer))
