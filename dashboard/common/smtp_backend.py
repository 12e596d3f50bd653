"""SMTP backend with one deadline over the lookup, the connection and every command."""

from __future__ import annotations

import contextlib
import functools
import smtplib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.mail.backends import smtp

from dashboard.common.outbound.resolver import resolve_name


class EmailBackend(smtp.EmailBackend):
    """Mail backend that hangs up at its deadline. A socket timeout limits only single reads, so a
    slow server could otherwise block a thread."""

    @property
    def connection_class(self) -> Callable[..., smtplib.SMTP]:
        """The class that Django uses to open the connection."""
        return functools.partial(
            _DeadlineSmtpTls if self.use_ssl else _DeadlineSmtp, seconds=settings.EMAIL_SECONDS
        )


class _DeadlineSmtp(smtplib.SMTP):
    """SMTP client that hangs up at its deadline, in every state."""

    def __init__(self, *args: Any, seconds: float, **kwargs: Any) -> None:
        self._until = time.monotonic() + seconds
        self._closed = threading.Event()
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Closes the connection and ends the watcher."""
        self._closed.set()
        super().close()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        for address in resolve_name(host, port, self._left(timeout)):
            try:
                connection = socket.create_connection((address, port), self._left(timeout))
            except OSError:
                continue
            # A second handle of the connection, because TLS takes over the first; shutdown affects
            # both.
            threading.Thread(
                target=self._watch, args=[connection.dup()], name="compilewatch-mail", daemon=True
            ).start()
            return connection
        raise OSError("could not connect to the mail server")

    def _watch(self, connection: socket.socket) -> None:
        with connection:
            if not self._closed.wait(self._left()):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _left(self, most: float = float("inf")) -> float:
        """Seconds left, never zero: a socket treats zero as non-blocking mode."""
        return max(0.001, min(most, self._until - time.monotonic()))


class _DeadlineSmtpTls(_DeadlineSmtp, smtplib.SMTP_SSL):
    """The same client with TLS from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self.context.wrap_socket(
            super()._get_socket(host, port, timeout), server_hostname=host
        )
