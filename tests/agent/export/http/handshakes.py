"""Servers that break a TLS handshake, each in its own way, and one healthy server."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from pathlib import Path

from tests.dashboard.common.test_outbound_certificates import DAY, NOW, certificate
from tests.dashboard.common.wire_server import Handler, request_read

BYTE_SECONDS = 0.05


def encrypted(
    path: Path, onward: int, *, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> Handler:
    """Forwards each request that arrives over TLS to the plain port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest

    def handle(connection: socket.socket) -> None:
        with (
            context.wrap_socket(connection, server_side=True) as secure,
            socket.create_connection(("127.0.0.1", onward)) as behind,
        ):
            behind.sendall(request_read(secure))
            while part := behind.recv(65536):
                secure.sendall(part)

    return handle


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def trickling(connection: socket.socket) -> None:
    """A record of 16 KiB, sent byte by byte."""
    connection.recv(65536)
    connection.sendall(b"\x16\x03\x03\x3f\xff")
    while True:
        connection.sendall(b"\x02")
        time.sleep(BYTE_SECONDS)


def half(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03")


def cut(connection: socket.socket) -> None:
    half(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def plain(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


WITHOUT_A_CERTIFICATE: dict[str, Handler] = {
    "it never ends": silent,
    "a byte after another": trickling,
    "reset in the middle": cut,
    "closed in the middle": half,
    "no TLS at all": plain,
}
WITH_A_CERTIFICATE = ("expired", "signed by no authority", "for another host", "TLS 1.0 alone")


def spoiled(kind: str, folder: Path, onward: int) -> tuple[Handler, Path]:
    """The server, and the certificate that its clients trust."""
    if kind in WITHOUT_A_CERTIFICATE:
        return WITHOUT_A_CERTIFICATE[kind], certificate(folder, "localhost", NOW + DAY)
    name, until = (
        "other.example" if kind == "for another host" else "localhost",
        NOW - DAY if kind == "expired" else NOW + DAY,
    )
    path = certificate(folder, name, until)
    newest = ssl.TLSVersion.TLSv1 if kind == "TLS 1.0 alone" else ssl.TLSVersion.TLSv1_3
    handler = encrypted(path, onward, newest=newest)
    (folder / "trusted").mkdir()
    return handler, certificate(
        folder / "trusted", "localhost", NOW + DAY
    ) if kind == "signed by no authority" else path
