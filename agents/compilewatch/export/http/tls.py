"""What an https dashboard proves itself with; loaded for such an endpoint alone, as OpenSSL takes 5 MiB."""

from __future__ import annotations

import socket
import ssl


class Tls:
    """Belongs to the agent's thread."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    def prepare(self) -> None:
        """Reads the certificates, once: that takes longer than the request."""
        if self._context is None:
            self._context = ssl.create_default_context()
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2

    def wrapped(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """The socket for TLS, before the handshake."""
        self.prepare()
        assert self._context is not None
        return self._context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)

    def failed(self, error: OSError) -> None:
        """After a request: the certificates on disk may have changed."""
        if isinstance(error, ssl.SSLError):
            self._context = None
