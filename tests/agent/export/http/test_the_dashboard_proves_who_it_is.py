"""With https, the certificate must be trusted, valid now, and issued for the host of the endpoint;
nothing is sent before this check."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from compilewatch.export.transport import HttpTransport

from tests.dashboard.common.test_outbound_certificates import DAY, NOW, certificate
from tests.dashboard.common.wire_server import Handler, request_read, wire_server

pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
BODY = b'{"v":1,"reports":[]}'
OURS = b'HTTP/1.1 200 OK\r\n\r\n{"cw": 1, "acked": [], "next_seq": 1}'


def encrypted(
    path: Path, requests: list[bytes], *, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> Handler:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = newest

    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            requests.append(request_read(secure))
            secure.sendall(OURS)

    return handle


@pytest.fixture
def trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, datetime.datetime], Path]:
    """Creates a certificate and makes it trusted."""

    def make(name: str, until: datetime.datetime = NOW + DAY) -> Path:
        path = certificate(tmp_path, name, until)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        return path

    return make


Trusted = Callable[..., Path]


def test_a_trusted_certificate_for_the_name_is_accepted_directly_and_through_a_proxy(
    trusted: Trusted,
) -> None:
    requests: list[bytes] = []
    with wire_server(encrypted(trusted("localhost"), requests)) as server:
        assert HttpTransport(f"https://localhost:{server.port}", "k").send(BODY).ack is not None

        def tunnel(connection: socket.socket) -> None:
            assert connection.recv(65536).startswith(b"CONNECT localhost:")
            with socket.create_connection(("127.0.0.1", server.port)) as onward:
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                pass_on(connection, onward)

        with wire_server(tunnel) as proxy:
            transport = HttpTransport(
                f"https://localhost:{server.port}", "k", f"http://127.0.0.1:{proxy.port}"
            )
            assert transport.send(BODY).ack is not None
            assert transport.send(BODY).ack is not None
            assert proxy.connections == 2
    assert len(requests) == 3
    assert all(request.startswith(b"POST /api/v1/reports HTTP/1.1\r\n") for request in requests)


def pass_on(one: socket.socket, other: socket.socket) -> None:
    """Forwards bytes in both directions until one side ends."""
    import select

    while True:
        for ready in select.select([one, other], [], [], 30)[0]:
            data = ready.recv(65536)
            if not data:
                return
            (other if ready is one else one).sendall(data)


@pytest.mark.parametrize(
    ("name", "until", "trust", "why"),
    [
        ("other.example", NOW + DAY, True, "not valid for 'localhost'"),
        ("localhost", NOW - DAY, True, "expired"),
        ("localhost", NOW + DAY, False, "self.signed"),
    ],
)
def test_a_certificate_that_is_expired_unknown_or_for_another_name_is_refused(
    name: str, until: datetime.datetime, trust: bool, why: str, trusted: Trusted, tmp_path: Path
) -> None:
    requests: list[bytes] = []
    path = trusted(name, until) if trust else certificate(tmp_path, name, until)
    with (
        wire_server(encrypted(path, requests)) as server,
        pytest.raises(ssl.SSLCertVerificationError, match=why),
    ):
        HttpTransport(f"https://localhost:{server.port}", "k").send(BODY)
    assert requests == []


def test_an_old_version_of_tls_is_refused(trusted: Trusted) -> None:
    requests: list[bytes] = []
    with (
        wire_server(
            encrypted(trusted("localhost"), requests, newest=ssl.TLSVersion.TLSv1_1)
        ) as server,
        pytest.raises(OSError),
    ):
        HttpTransport(f"https://localhost:{server.port}", "k").send(BODY)
    assert requests == []


def test_certificates_replaced_on_disk_are_read_again(trusted: Trusted, tmp_path: Path) -> None:
    requests: list[bytes] = []
    old = trusted("localhost", NOW - DAY)
    with wire_server(encrypted(old, requests)) as server:
        transport = HttpTransport(f"https://localhost:{server.port}", "k")
        with pytest.raises(ssl.SSLError):
            transport.send(BODY)
    with wire_server(encrypted(trusted("localhost"), requests)) as server:
        transport._target = type(transport._target)("localhost", server.port, True)
        assert transport.send(BODY).ack is not None


def test_a_server_without_encryption_gets_no_key() -> None:
    said: list[bytes] = []

    def plain(connection: socket.socket) -> None:
        said.append(connection.recv(65536))
        connection.sendall(OURS)

    with wire_server(plain) as server, pytest.raises(OSError):
        HttpTransport(f"https://localhost:{server.port}", "cw_ing_secret").send(BODY)
    assert b"cw_ing_secret" not in said[0]
