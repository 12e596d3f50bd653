"""A local mail server: it takes what it is given, or answers one command as told."""

from __future__ import annotations

import contextlib
import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage


@dataclass
class MailStandIn:
    """What came in; `answers` says what to answer to RCPT, MAIL or DATA instead of yes, and `broken` hangs up after the greeting."""

    port: int
    answers: dict[str, str] = field(default_factory=dict)
    broken: bool = False
    raw: list[bytes] = field(default_factory=list)
    to: list[str] = field(default_factory=list)

    @property
    def mails(self) -> list[EmailMessage]:
        return [email.message_from_bytes(one, policy=email.policy.default) for one in self.raw]  # type: ignore[misc]


@contextlib.contextmanager
def mail_stand_in() -> Iterator[MailStandIn]:
    """Serves on a free port until the end."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 stand-in\r\n")
            while not record.broken and (line := self.rfile.readline()):
                word = line[:4].decode().upper()
                said = record.answers.get(word, {"DATA": "354 go on", "QUIT": "221 bye"}.get(word, "250 yes"))
                self.wfile.write(f"{said}\r\n".encode())
                if word == "RCPT":
                    record.to.append(line.decode().strip())
                if word == "DATA" and said.startswith("354"):
                    self._body()
                if word == "QUIT":
                    return

        def _body(self) -> None:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            record.raw.append(b"".join(lines))
            self.wfile.write(b"250 taken\r\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    record = MailStandIn(server.server_address[1])
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield record
    finally:
        server.shutdown()
        server.server_close()
