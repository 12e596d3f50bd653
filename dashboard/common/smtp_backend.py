"""Django's mail backend with one time limit over everything: looking the name up, connecting, and
every line that is said."""

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
    """A server that answers a byte at a time is hung up on: the time limit of a socket is one for
    each read alone."""

    @property
    def connection_class(self) -> Callable[..., smtplib.SMTP]:
        """What Django opens the connection with."""
        return functools.partial(
            _DeadlineSmtpTls if self.use_ssl else _DeadlineSmtp, seconds=settings.EMAIL_SECONDS
        )


class _DeadlineSmtp(smtplib.SMTP):
    """Hangs up when its time is over, whatever it waits for just then."""

    def __init__(self, *args: Any, seconds: float, **kwargs: Any) -> None:
        self._until = time.monotonic() + seconds
        self._closed = threading.Event()
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Nobody has to hang up any more."""
        self._closed.set()
        super().close()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        for address in resolve_name(host, port, self._left(timeout)):
            try:
                connection = socket.create_connection((address, port), self._left(timeout))
            except OSError:
                continue
            # A second handle, since TLS takes the first one over: what is shut down is the
            # connection itself.
            threading.Thread(
                target=self._watch, args=[connection.dup()], name="compilewatch-mail", daemon=True
            ).start()
            return connection
        raise OSError("the mail server could not be reached")

    def _watch(self, connection: socket.socket) -> None:
        with connection:
            if not self._closed.wait(self._left()):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _left(self, most: float = float("inf")) -> float:
        """Never zero: a socket takes zero for "do not wait"."""
        return max(0.001, min(most, self._until - time.monotonic()))


class _DeadlineSmtpTls(_DeadlineSmtp, smtplib.SMTP_SSL):
    """The same with TLS from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self.context.wrap_socket(
            super()._get_socket(host, port, timeout), server_hostname=host
        )
