"""https verifies the certificate for the configured host name, at the address that was resolved
once."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django import Settings

from dashboard.common.outbound.client import OutboundFailure, OutboundResponse, outbound_post
from tests.dashboard.common.wire_server import Handler, answering, request_read, wire_server

NAME = "hooks.example"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def certificate(folder: Path, name: str, until: datetime.datetime) -> Path:
    """A self-signed certificate with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = x509.CertificateBuilder(
        subject, subject, key.public_key(), x509.random_serial_number(), until - 30 * DAY, until
    )
    signed = built.add_extension(
        x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
    ).sign(key, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + secret)
    return path


def encrypted(path: Path, names: list[str | None]) -> Handler:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.sni_callback = lambda _, name, __: names.append(name)

    def handle(connection: socket.socket) -> None:
        with (
            contextlib.suppress(ssl.SSLError),
            context.wrap_socket(connection, server_side=True) as secure,
        ):
            request_read(secure)
            secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    return handle


@pytest.fixture
def post(settings: Settings, tmp_path: Path) -> Callable[[Handler], OutboundResponse]:
    def send(handler: Handler) -> OutboundResponse:
        with wire_server(handler) as server:
            settings.OUTBOUND_ALLOW = (f"{NAME}:{server.port}",)
            return outbound_post(
                url=f"https://{NAME}:{server.port}/",
                body=b"{}",
                headers={},
                resolver=lambda *_: ["127.0.0.1"],
            )

    return send


def test_a_trusted_certificate_for_the_name_is_accepted(
    post: Callable[[Handler], OutboundResponse], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, names = certificate(tmp_path, NAME, NOW + DAY), list[str | None]()
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    assert post(encrypted(path, names)) == OutboundResponse(200, "ok")
    assert names == [NAME]


@pytest.mark.parametrize(
    ("name", "until", "trusted"),
    [("other.example", NOW + DAY, True), (NAME, NOW - DAY, True), (NAME, NOW + DAY, False)],
)
def test_a_wrong_expired_or_unknown_certificate_is_refused(
    name: str,
    until: datetime.datetime,
    trusted: bool,
    post: Callable[[Handler], OutboundResponse],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = certificate(tmp_path, name, until)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(OutboundFailure, match="The server's certificate is not valid"):
        post(encrypted(path, []))


def test_a_server_without_encryption_receives_no_message(
    post: Callable[[Handler], OutboundResponse],
) -> None:
    with pytest.raises(OutboundFailure, match="No TLS connection"):
        post(lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n"))
    with pytest.raises(OutboundFailure, match="No TLS connection"):
        post(lambda connection: None)


def test_a_plain_text_response_to_the_handshake_is_a_failure(
    post: Callable[[Handler], OutboundResponse],
) -> None:
    with pytest.raises(OutboundFailure):
        post(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
