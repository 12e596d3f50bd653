"""Advice texts: the setting to check after a request without a valid answer from the dashboard."""

from __future__ import annotations

import socket
import sys

from compilewatch.export.http.connection import HandshakeError

CERTIFICATE = (
    "the certificate must be valid and match the host in COMPILEWATCH_ENDPOINT; to trust a "
    "certificate of your own CA, set SSL_CERT_FILE=/path/to/ca.pem"
)
TLS = "check that the port in COMPILEWATCH_ENDPOINT accepts https with TLS 1.2 or newer"
NAME = "check the host in COMPILEWATCH_ENDPOINT and the DNS settings of this machine"
ADDRESS = (
    "check COMPILEWATCH_ENDPOINT, and whether this host may connect to it or needs "
    "COMPILEWATCH_PROXY"
)
OTHER_PROGRAM = (
    "another program answered at this address: check host, port and path of "
    "COMPILEWATCH_ENDPOINT and any proxy in between"
)


def advice_of(error: Exception) -> str:
    """Returns the advice for an error that left a request without an answer."""
    ssl = sys.modules.get("ssl")  # http.client has loaded ssl, if this Python has ssl
    if ssl is not None and isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATE
    if isinstance(error, HandshakeError) or (ssl is not None and isinstance(error, ssl.SSLError)):
        return TLS
    return NAME if isinstance(error, socket.gaierror) else ADDRESS
