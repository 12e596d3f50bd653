"""Every request ends within its time limit and reads no more than the maximum answer size, for
every behaviour of the server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compilewatch.export.http import connection as connection_module
from compilewatch.export.http.response import ResponseError
from compilewatch.export.transport import HttpTransport

from tests.dashboard.common.wire_server import Handler, request_read, wire_server

SHORT = 0.4
LIVENESS = 10 * SHORT
BODY = b'{"v":1,"reports":[]}'


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twentieth of the real limits: the test checks that each limit is enforced, not its
    value."""
    assert (
        connection_module.CONNECT_SECONDS,
        connection_module.READ_SECONDS,
        connection_module.TOTAL_SECONDS,
    ) == (3.0, 5.0, 8.0)
    monkeypatch.setattr(connection_module, "CONNECT_SECONDS", SHORT / 2)
    monkeypatch.setattr(connection_module, "READ_SECONDS", SHORT / 2)
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", SHORT)


def drip(first: bytes, then: bytes) -> Handler:
    """Reads the request, sends the first part, then the second part repeatedly, in time for every
    read."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(first)
        while True:
            connection.sendall(then)
            time.sleep(SHORT / 10)

    return handle


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def deaf(connection: socket.socket) -> None:
    time.sleep(LIVENESS * 2)


SLOW: dict[str, Handler] = {
    "silence": silent,
    "one byte of the status line after another": drip(b"", b"H"),
    "one header after another": drip(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
    "an endless number of interim answers": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "one byte of the body after another": drip(
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", b"x"
    ),
    "one byte of the handshake after another": drip(b"\x16\x03\x03\x3f\xff", b"\x02"),
    "one chunk after another": drip(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"
    ),
    "the request is never read": deaf,
}


@pytest.mark.parametrize("scheme", ["http", "https", "through a proxy"])
@pytest.mark.parametrize("handler", SLOW.values(), ids=SLOW.keys())
def test_a_request_ends_in_time(handler: Handler, scheme: str) -> None:
    body = incompressible(6 << 20) if handler is deaf else BODY
    with wire_server(handler) as server:
        transport = {
            "http": lambda: HttpTransport(f"http://127.0.0.1:{server.port}", "k"),
            "https": lambda: HttpTransport(f"https://127.0.0.1:{server.port}", "k"),
            "through a proxy": lambda: HttpTransport(
                "https://dashboard.example", "k", f"http://127.0.0.1:{server.port}"
            ),
        }[scheme]()
        began = time.monotonic()
        with pytest.raises(OSError):
            transport.send(body)
        assert time.monotonic() - began < LIVENESS


def incompressible(size: int) -> bytes:
    import random

    return random.Random(0).randbytes(size)


def flood(line: bytes) -> Handler:
    def handle(connection: socket.socket) -> None:
        request_read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(line * 1000)

    return handle


FLOODS = {
    "headers": flood(b"X-%d: y\r\n" % 1),
    "one header": flood(b"x"),
    "interim answers": flood(b"\r\nHTTP/1.1 100 Continue\r\n"),
    "a body without a length": flood(b"\r\n\r\nxxxxxxxxxx"),
    "a body of many gigabytes": flood(b"Content-Length: 99999999999\r\n\r\nxxxxxxxxxx"),
    "a chunk of many gigabytes": flood(
        b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\nxxxxxxxxxxxxx"
    ),
}


@pytest.mark.parametrize("handler", FLOODS.values(), ids=FLOODS.keys())
def test_a_request_reads_at_most_the_maximum_answer_size(
    handler: Handler, read: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", 60.0)
    monkeypatch.setattr(connection_module, "READ_SECONDS", 60.0)
    with wire_server(handler) as server, pytest.raises(ResponseError):
        HttpTransport(f"http://127.0.0.1:{server.port}", "k").send(BODY)
    assert (
        read() <= connection_module.MAX_RESPONSE_BYTES + 8192
    )  # one buffer beyond the limit shows the end


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """The number of received bytes."""
    total = [0]
    real = connection_module.BoundedSocket.receive

    def receive(self: connection_module.BoundedSocket, buffer: bytearray) -> int:
        count = real(self, buffer)
        total[0] += count
        return count

    def counted(self: connection_module.BoundedSocket, buffer: bytearray) -> int:
        try:
            return receive(self, buffer)
        except ResponseError:
            total[0] += len(buffer)
            raise

    monkeypatch.setattr(connection_module.BoundedSocket, "receive", counted)
    yield lambda: total[0]


def test_a_name_with_many_unanswered_addresses_ends_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for (
            filler
        ) in fillers:  # from here on the queue is full, and a connection attempt is not answered
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: [place] * 50)
        began = time.monotonic()
        with pytest.raises(OSError):
            HttpTransport("http://many.example", "k").send(BODY)
        assert time.monotonic() - began < LIVENESS
        for filler in fillers:
            filler.close()


def test_one_unanswered_address_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handle(connection: socket.socket) -> None:
        request_read(connection)
        connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"cw": 1, "acked": [], "next_seq": 1}')

    with wire_server(handle) as server:
        places = [("127.0.0.1", 9), ("127.0.0.1", server.port)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: found)
        assert HttpTransport("http://two.example", "k").send(BODY).ack is not None


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with wire_server(lambda connection: None) as server:
        transports = [
            HttpTransport(f"http://127.0.0.1:{server.port}", "k"),
            HttpTransport(f"https://127.0.0.1:{server.port}", "k"),
            HttpTransport("https://dashboard.example", "k", f"http://127.0.0.1:{server.port}"),
            HttpTransport("http://127.0.0.1:9", "k"),
        ]
        before = 0
        for number in range(30):
            for transport in transports:
                with pytest.raises(OSError):
                    transport.send(BODY)
            before = before or count()
            assert count() <= before + 3, (
                number
            )  # the server may still be closing its own end of a connection


@pytest.mark.parametrize("scheme", ["http", "https", "through a proxy"])
def test_another_thread_can_interrupt_a_request(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "TOTAL_SECONDS", 120.0)
    monkeypatch.setattr(connection_module, "READ_SECONDS", 120.0)
    waiting = threading.Event()

    def wait(connection: socket.socket) -> None:
        connection.recv(65536)
        waiting.set()
        while connection.recv(65536):
            pass

    with wire_server(wait) as server:
        host = f"127.0.0.1:{server.port}"
        transport = {
            "http": lambda: HttpTransport(f"http://{host}", "k"),
            "https": lambda: HttpTransport(f"https://{host}", "k"),
            "through a proxy": lambda: HttpTransport(
                "https://dashboard.example", "k", f"http://{host}"
            ),
        }[scheme]()
        transport.interrupt()  # no request is in progress
        threading.Thread(
            target=lambda: waiting.wait(30) and transport.interrupt(), daemon=True
        ).start()
        began = time.monotonic()
        with pytest.raises(OSError):
            transport.send(BODY)
        assert time.monotonic() - began < 30
