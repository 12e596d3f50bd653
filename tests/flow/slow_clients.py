"""Clients that hold a connection with minimal activity, in four shapes; one thread moves all of
them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from compilewatch.wire.codec import dumps

from tests.dashboard.requests import request_make
from tests.flow.stack import Stack, answer_of

COUNT = 500
SIGN_IN, REPORTS = "/accounts/login/", "/api/v1/reports"
LARGE = "/static/vendor/plotly.min.js"
"""A file of some megabytes: no kernel buffers all of it for a client that reads nothing."""


def head(path: str, **headers: str) -> bytes:
    """The head of a request whose body of half a kilobyte is held back."""
    lines = [
        "Host: 127.0.0.1",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return (
        "\r\n".join(
            [f"{'POST' if 'Content_Length' in headers else 'GET'} {path} HTTP/1.1", *lines]
        ).encode()
        + b"\r\n\r\n"
    )


def shapes(key: str) -> dict[str, bytes]:
    """Data that a client of each shape sends at once, before one byte per second."""
    cookie = "a" * 32
    form = {"Content_Type": "application/x-www-form-urlencoded", "Content_Length": "500"}
    return {
        "headers": head(SIGN_IN)[:-2] + b"X-Slow: ",
        "body on sign-in": head(SIGN_IN, Cookie=f"csrftoken={cookie}; cw_csrf={cookie}", **form)
        + f"csrfmiddlewaretoken={cookie}".encode(),
        "body on reports": head(
            REPORTS,
            Content_Type="application/json",
            Content_Length="60000",
            Authorization=f"Bearer {key}",
        )
        + b"{",
        "body on reports, unknown key": head(
            REPORTS, Content_Type="application/json", Content_Length="60000"
        )
        + b"{",
        "response": head(LARGE) * 20,
    }


@contextlib.contextmanager
def slow_clients(port: int, first: bytes, *, count: int = COUNT) -> Iterator[list[socket.socket]]:
    """The connections, while open; connections that the server ended stay ended."""
    sends = not first.startswith(f"GET {LARGE}".encode())
    held, stop = [_slow(port) for _ in range(count)], threading.Event()
    for one in held:
        one.sendall(first)
    trickle = threading.Thread(
        target=_trickle, args=(held, stop) if sends else ([], stop), daemon=True
    )
    trickle.start()
    try:
        yield held
    finally:
        stop.set()
        trickle.join()
        for one in held:
            one.close()


def _slow(port: int) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", port))
    return connection


def _trickle(held: list[socket.socket], stop: threading.Event) -> None:
    while not stop.wait(1.0):
        for one in held:
            with contextlib.suppress(OSError):
                one.sendall(b"a")


def seconds(ask: Callable[[], int], *, patience: float = 10.0) -> float:
    """Duration of a request answered with 200; infinite without such a response."""
    begun = time.monotonic()
    status = ask()
    took = time.monotonic() - begun
    return took if status == 200 and took < patience else float("inf")


def health(stack: Stack) -> int:
    """The status of a probe on its own connection."""
    return stack.status("/healthz")


class Reporter:
    """An agent that sends one window after the other."""

    def __init__(self, stack: Stack, instance: int) -> None:
        self._stack, self._instance, self._sent = stack, instance, 0

    def __call__(self) -> int:
        """The status of the next report, 0 without a response."""
        self._sent += 1
        data: dict[str, Any] = json.loads(
            dumps(request_make(end=time.time(), instance=self._instance))
        )
        data["reports"][0]["seq"] = [self._sent, self._sent]
        return answer_of(self._stack.port, self._stack.key, json.dumps(data).encode())[0]


def worst(stack: Stack, reporter: Reporter, *, for_seconds: float) -> dict[str, float]:
    """The slowest probe and the slowest report, requested alternately for this time."""
    found = {"health": 0.0, "report": 0.0}
    end = time.monotonic() + for_seconds
    while time.monotonic() < end and max(found.values()) < float("inf"):
        found["health"] = max(found["health"], seconds(lambda: health(stack)))
        found["report"] = max(found["report"], seconds(reporter))
        time.sleep(0.1)
    return found
