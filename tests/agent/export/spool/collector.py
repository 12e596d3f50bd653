"""A fake transport: it acknowledges every window that it receives and keeps it."""

from __future__ import annotations

import json

from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack


class Collector:
    """Replaces the transport; `answers` are returned first."""

    def __init__(self) -> None:
        self.windows: list[tuple[str, tuple[int, int]]] = []
        self.requests: list[dict[str, object]] = []
        self.answers: list[Answer] = []

    def send(self, body: bytes) -> Answer:
        """Accepts a request as the dashboard does."""
        request = json.loads(body)
        self.requests.append(request)
        if self.answers:
            return self.answers.pop(0)
        ranges = [(report["seq"][0], report["seq"][1]) for report in request["reports"]]
        self.windows += [(request["instance"]["id"], seq) for seq in ranges]
        return Answer(200, ack=Ack(ranges, ranges[-1][1] + 1 if ranges else 1))

    def interrupt(self) -> None:
        """No request is ever in progress."""
