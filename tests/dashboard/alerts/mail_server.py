"""A local mail server that accepts every mail, or gives a configured answer to one command."""

from __future__ import annotations

import contextlib
import email
import email.policy
import queue
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage


@dataclass
class MailStandIn:
    """Received mails; `answers` maps RCPT, MAIL or DATA to the answer to send instead of success,
    and `broken` hangs up after the greeting.

    `slow` names the answer that is sent one byte at a time over ten seconds: HELLO (the greeting),
    TLS (a handshake), or a command; `hung_up` lists the answers that the client did not wait
    for."""

    port: int
    answers: dict[str, str] = field(default_factory=dict)
    broken: bool = False
    slow: str = ""
    hung_up: queue.Queue[str] = field(default_factory=queue.Queue)
    raw: list[bytes] = field(default_factory=list)
    to: list[str] = field(default_factory=list)

    @property
    def mails(self) -> list[EmailMessage]:
        return [email.message_from_bytes(one, policy=email.policy.default) for one in self.raw]  # type: ignore[misc]


class Handler(socketserver.StreamRequestHandler):
    """One connection; the class of each server sets the record and the answers."""

    record: MailStandIn

    def handle(self) -> None:
        if self.record.slow == "TLS":
            self._say("TLS", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" + bytes(189))
            return
        self._say("HELLO", b"220 stand-in")
        while not self.record.broken and (line := self.rfile.readline()):
            word = line[:4].decode().upper()
            said = self.record.answers.get(
                word, {"DATA": "354 go on", "QUIT": "221 bye"}.get(word, "250 yes")
            )
            self._say(word, said.encode())
            if word == "RCPT":
                self.record.to.append(line.decode().strip())
            if word == "DATA" and said.startswith("354"):
                self._body()
            if word == "QUIT":
                return

    def _body(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        self.record.raw.append(b"".join(lines))
        self.wfile.write(b"250 taken\r\n")

    def _say(self, word: str, text: bytes) -> None:
        if word != self.record.slow:
            self.wfile.write(text + b"\r\n")
            return
        try:
            for letter in text.ljust(200, b"."):
                self.wfile.write(bytes([letter]))
                time.sleep(0.05)
            self.wfile.write(b"\r\n")
        except OSError:
            self.record.hung_up.put(word)


@contextlib.contextmanager
def mail_server() -> Iterator[MailStandIn]:
    """Serves on a free port until the context ends."""
    served = type("Served", (Handler,), {})
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), served)
    server.daemon_threads = True
    record = served.record = MailStandIn(server.server_address[1])  # type: ignore[attr-defined]
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    try:
        yield record
    finally:
        server.shutdown()
        server.server_close()
