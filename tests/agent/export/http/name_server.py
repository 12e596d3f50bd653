"""A name server that a test can silence, and processes that ask only this server: through glibc's
resolver, in their own mount namespace."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.agent.programs import environment
from tests.machine import need

ADDRESS = "127.77.0.1"
NAME = "dashboard.example"
MOUNTED = 'mount --bind "$1" /etc/resolv.conf && mount --bind "$2" /etc/nsswitch.conf && shift 2 && exec "$@"'
IPV4 = 1


class NameServer:
    """Resolves every name to this host once it is `awake`; until then it accepts queries and does
    not answer."""

    def __init__(self, sock: socket.socket, folder: Path) -> None:
        self.awake = threading.Event()
        self.asked = threading.Event()
        self._sock = sock
        self._started: list[subprocess.Popen[str]] = []
        self._resolver, self._services = folder / "resolv.conf", folder / "nsswitch.conf"
        self._resolver.write_text(f"nameserver {ADDRESS}\noptions timeout:1 attempts:60\n")
        self._services.write_text("hosts: files dns\n")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while (found := self._sock.recvfrom(4096))[0]:
                question, client = found
                self.asked.set()
                if self.awake.is_set():
                    self._sock.sendto(_answer(question), client)

    def start(self, program: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """A process with the agent's settings that resolves names through this server."""
        words = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            MOUNTED,
            "sh",
            str(self._resolver),
            str(self._services),
        ]
        process = subprocess.Popen(
            [*words, sys.executable, "-c", program, *arguments],
            env=environment(**settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def end(self) -> None:
        """Stops what a failed test left behind."""
        for process in self._started:
            process.kill()
            process.wait(60)
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)  # the kernel frees the port once no thread reads from the socket


def _answer(question: bytes) -> bytes:
    """127.0.0.1 for an IPv4 query, no record for another query; the answer repeats the query
    without its additional records."""
    end = question.index(b"\0", 12) + 5
    (kind,) = struct.unpack(">H", question[end - 4 : end - 2])
    found = (
        b"\xc0\x0c" + struct.pack(">HHIH", IPV4, 1, 1, 4) + bytes([127, 0, 0, 1])
        if kind == IPV4
        else b""
    )
    return (
        question[:2]
        + struct.pack(">HHHHH", 0x8180, 1, bool(found), 0, 0)
        + question[12:end]
        + found
    )


@contextmanager
def name_server(folder: Path) -> Iterator[NameServer]:
    """A name server at port 53 of a loopback address that no other program uses."""
    need("root, to mount")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((ADDRESS, 53))
        server = NameServer(sock, folder)
        try:
            yield server
        finally:
            server.end()
