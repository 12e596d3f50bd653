"""The smallest possible server for reports: a WSGI application without Django that only parses, or
also stores the parsed reports.

`BENCH_PEER=parse` only inflates and parses; `minimal` also commits each report to `bench_inbox`,
many in one transaction. The additional cost of our server is the price of checking keys, limits and
ranges."""

from __future__ import annotations

import gzip
import json
import os
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
import psycopg.conninfo

MOST = 500
Row = tuple[str, int, int, bytes]
Start = Callable[[str, list[tuple[str, str]]], Any]


class Committer:
    """One thread that commits all waiting rows and then wakes their requests."""

    def __init__(self, url: str) -> None:
        self._waiting: queue.SimpleQueue[tuple[Row, threading.Event]] = queue.SimpleQueue()
        self._connection = psycopg.connect(url)
        threading.Thread(target=self._run, daemon=True).start()

    def keep(self, row: Row) -> None:
        """Returns when the row is durable."""
        done = threading.Event()
        self._waiting.put((row, done))
        done.wait()

    def _run(self) -> None:
        while True:
            taken = [self._waiting.get()]
            while not self._waiting.empty() and len(taken) < MOST:
                taken.append(self._waiting.get())
            with (
                self._connection.cursor() as cursor,
                cursor.copy("COPY bench_inbox (instance, first, last, report) FROM STDIN") as copy,
            ):
                for row, _ in taken:
                    copy.write_row(row)
            self._connection.commit()
            for _, done in taken:
                done.set()


_committer: Committer | None = None
_guard = threading.Lock()


def committer() -> Committer:
    """The committer of this process; the first request after the fork of the server creates it."""
    global _committer
    with _guard:
        if _committer is None:
            _committer = Committer(os.environ["COMPILEWATCH_DATABASE_URL"])
    return _committer


def application(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """Accepts a request and acknowledges every range in it."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if not length:
        start("404 Not Found", [("Content-Length", "0")])
        return [b""]
    body = gzip.decompress(environ["wsgi.input"].read(length))
    request = json.loads(body)
    ranges = [report["seq"] for report in request["reports"]]
    if os.environ["BENCH_PEER"] == "minimal":
        committer().keep((request["instance"]["id"], ranges[0][0], ranges[-1][1], body))
    answer = json.dumps(
        {"cw": 1, "acked": ranges, "next_seq": ranges[-1][1] + 1, "commands": []},
        separators=(",", ":"),
    ).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
    return [answer]
