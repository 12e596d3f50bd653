"""A proxy on real sockets between agents and a dashboard that applies a planned fault to each
request."""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Callable

from tests.dashboard.common.wire_server import request_read

PATIENCE = 30.0
HTML = b"<html><body>All is well</body></html>"
ODD_RETRY_AFTER = ("0", "1", "1000000000", "-1", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "1e9", "")
REORDERED = 64


class Exchange:
    """One connection of an agent, with the possible faults."""

    def __init__(self, client: socket.socket, proxy: FaultProxy) -> None:
        self.client, self.proxy, self.chance = client, proxy, proxy.chance
        self._request = b""

    @property
    def request(self) -> bytes:
        """The whole request, read on first use."""
        self._request = self._request or request_read(self.client)
        return self._request

    def forward(self) -> bytes:
        """The dashboard's response to the request."""
        return self.proxy.ask(self.request)

    def reset(self) -> None:
        """Resets the connection, like a host without that connection."""
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def hold(self) -> None:
        """Keeps the connection open without a response until the other side closes."""
        with contextlib.suppress(OSError):
            while select.select([self.client], [], [], PATIENCE)[0] and self.client.recv(65536):
                pass

    def respond(self, status: str, body: bytes, *headers: str) -> None:
        """Sends a response that does not come from the dashboard."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        self.client.sendall("\r\n".join(lines).encode() + body)


def clean(one: Exchange) -> None:
    one.client.sendall(one.forward())


def refuse(one: Exchange) -> None:
    one.reset()


def blackhole(one: Exchange) -> None:
    one.proxy.wait_for_end(one.client)


def half_open(one: Exchange) -> None:
    _ = one.request
    one.hold()


def half_open_after_forwarding(one: Exchange) -> None:
    one.forward()
    one.hold()


def reset_in_the_request(one: Exchange) -> None:
    one.client.recv(one.chance.randint(1, 400))
    one.reset()


def reset_in_the_answer(one: Exchange) -> None:
    answer = one.forward()
    one.client.sendall(answer[: one.chance.randrange(len(answer))])
    one.reset()


def slow(one: Exchange) -> None:
    for byte in one.forward():
        one.client.sendall(bytes([byte]))
        time.sleep(one.proxy.byte_seconds)


def truncated(one: Exchange) -> None:
    answer = one.forward()
    one.client.sendall(answer[: -one.chance.randint(1, 30)])


def wrong_ack(one: Exchange) -> None:
    _ = one.request
    one.respond(
        "200 OK", json.dumps({"cw": 1, "acked": [[900_000, 900_001]], "next_seq": 900_002}).encode()
    )


def html_200(one: Exchange) -> None:
    _ = one.request
    one.respond("200 OK", HTML, "Content-Type: text/html")


def redirect_302(one: Exchange) -> None:
    _ = one.request
    one.respond("302 Found", b"", f"Location: http://127.0.0.1:{one.proxy.port}/elsewhere")


def bare_404(one: Exchange) -> None:
    _ = one.request
    one.respond("404 Not Found", HTML)


def busy(one: Exchange) -> None:
    _ = one.request
    status = one.chance.choice(("429 Too Many Requests", "503 Service Unavailable"))
    code = "too_many" if status.startswith("429") else "busy"
    body = json.dumps({"cw": 1, "code": code, "detail": "later"}).encode()
    one.respond(
        status,
        one.chance.choice((body, HTML, b"")),
        f"Retry-After: {one.chance.choice(ODD_RETRY_AFTER)}",
    )


def huge(one: Exchange) -> None:
    _ = one.request
    one.respond(
        "200 OK",
        b'{"cw": 1, "acked": [[1, 999999]], "next_seq": 2, "x": "' + b"x" * (1 << 20) + b'"}',
    )


def drop_the_answer(one: Exchange) -> None:
    one.forward()


def replay(one: Exchange) -> None:
    for _ in range(4):
        one.forward()
    one.client.sendall(one.forward())


def reorder(one: Exchange) -> None:
    """Sends no response now, and forwards the request to the dashboard after many others. A sender
    that died may have sent an empty request."""
    if one.request:
        one.proxy.keep_for_later(one.request)


def delay(one: Exchange) -> None:
    _ = one.request
    time.sleep(one.chance.uniform(0.0, 1.0))
    clean(one)


Fault = Callable[[Exchange], None]
FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        refuse, blackhole, half_open, half_open_after_forwarding, reset_in_the_request, reset_in_the_answer, slow, truncated, wrong_ack,
        html_200, redirect_302, bare_404, busy, huge, drop_the_answer, replay, reorder, delay,
    )
}  # fmt: skip


class FaultProxy:
    """Listens until it is closed. `plan` returns the fault of each connection, or "" for none; it
    receives the proxy's own random generator."""

    def __init__(self, target_port: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.plan: Callable[[random.Random], str] = lambda chance: ""
        self.byte_seconds = 0.05
        self.counts: dict[str, int] = {}
        self.open_now = 0
        """Connections that are currently open."""
        self._target = target_port
        self._later: list[bytes] = []
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        """The endpoint for the agents."""
        return f"http://127.0.0.1:{self.port}"

    def down(self) -> None:
        """Stops listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def up(self) -> None:
        """Listens again on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def calm(self) -> None:
        """Ends all faults; delayed requests go to the dashboard now."""
        self.plan = lambda chance: ""
        self._send_kept(0)

    def ask(self, request: bytes) -> bytes:
        """The dashboard's response."""
        with socket.create_connection(("127.0.0.1", self._target), timeout=PATIENCE) as onward:
            onward.sendall(request)
            parts = []
            while part := onward.recv(65536):
                parts.append(part)
        self._send_kept(REORDERED)
        return b"".join(parts)

    def keep_for_later(self, request: bytes) -> None:
        """Forwards the request after many others."""
        with self._guard:
            self._later.append(request)

    def _send_kept(self, most: int) -> None:
        with self._guard:
            self.chance.shuffle(self._later)
            due, self._later = self._later[most:], self._later[:most]
        for request in due:
            self.ask(request)

    def wait_for_end(self, client: socket.socket) -> None:
        """Reads nothing, and returns when the other side has closed."""
        poll = select.poll()
        poll.register(client, select.POLLRDHUP)
        poll.poll(PATIENCE * 1000)

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._handle, args=(client,), daemon=True).start()

    def _handle(self, client: socket.socket) -> None:
        with self._guard:
            name = self.plan(self.chance)
            self.counts[name or "clean"] = self.counts.get(name or "clean", 0) + 1
            self.open_now += 1
        with client, contextlib.suppress(OSError, ValueError):
            FAULTS.get(name, clean)(Exchange(client, self))
        with self._guard:
            self.open_now -= 1

    def close(self) -> None:
        """Stops listening."""
        self.down()
