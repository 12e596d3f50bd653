"""What a person can do where no answer comes from the dashboard."""

from __future__ import annotations

import socket
import sys

from compilewatch.export.http.connection import HandshakeError

CERTIFICATE = (
    "the certificate must hold today and name the host of COMPILEWATCH_ENDPOINT; "
    "one that your organisation signed is trusted with SSL_CERT_FILE=/path/to/ca.pem"
)
TLS = "check whether the port in COMPILEWATCH_ENDPOINT speaks https, with TLS 1.2 or newer"
NAME = "check the host in COMPILEWATCH_ENDPOINT, and the name server of this machine"
ADDRESS = "check COMPILEWATCH_ENDPOINT, and whether this host may connect there or needs COMPILEWATCH_PROXY"
ANOTHER = "another program answers at this address: check host, port and path of COMPILEWATCH_ENDPOINT, and proxies on the way"


def advice_of(error: Exception) -> str:
    """The setting to look at after a request that brought no answer."""
    ssl = sys.modules.get("ssl")  # loaded for https alone
    if ssl is not None and isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATE
    if isinstance(error, HandshakeError) or (ssl is not None and isinstance(error, ssl.SSLError)):
        return TLS
    return NAME if isinstance(error, socket.gaierror) else ADDRESS
