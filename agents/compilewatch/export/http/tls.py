"""TLS context: verifies the certificate of an https dashboard."""

from __future__ import annotations

import socket
import ssl


class Tls:
    """The TLS settings of one sender; only the agent's thread uses them."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    def load_certificates(self) -> ssl.SSLContext:
        """Reads the trusted certificates once: that takes longer than a request."""
        if self._context is None:
            self._context = ssl.create_default_context()
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        return self._context

    def wrap(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """Returns the socket for TLS, before the handshake."""
        return self.load_certificates().wrap_socket(
            sock, server_hostname=host, do_handshake_on_connect=False
        )

    def forget_certificates(self, error: OSError) -> None:
        """Called after a failed request: the certificates on disk may have changed."""
        if isinstance(error, ssl.SSLError):
            self._context = None
