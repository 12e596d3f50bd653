"""A small instance that sends one report after another and keeps every response; it resends the
same bytes until they are acknowledged."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from dataclasses import dataclass

from compilewatch.wire.codec import dumps

from tests.dashboard.requests import request_make
from tests.flow.stack import Stack, wait_for

CALLS = 100


@dataclass
class Answer:
    """The result of one request; status 0 is a broken or refused connection."""

    at: float
    status: int
    retry_after: str
    seconds: float

    @property
    def busy(self) -> bool:
        """503 with the time to retry."""
        return self.status == 503 and self.retry_after.isdigit() and int(self.retry_after) >= 1


class Prober:
    """Used in a `with` statement; at its end the last report is acknowledged, too."""

    def __init__(
        self, stack: Stack, version: str, *, pause: float = 0.02, key: str = "", port: int = 0
    ) -> None:
        self.stack, self.version, self.acked = stack, version, 0
        self.port, self.answers = port or stack.port, list[Answer]()
        self._instance, self._pause, self._key = (
            zlib.crc32(version.encode()),
            pause,
            key or stack.key,
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Prober:
        self._thread.start()
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._over.set()
        if failed is None:
            self._thread.join(120)
            assert not self._thread.is_alive(), "the last report was not acknowledged"

    def since(self, moment: float) -> list[Answer]:
        """Responses to requests that were sent after a moment of the monotonic clock."""
        return [answer for answer in list(self.answers) if answer.at >= moment]

    def wait_for_ack(self) -> float:
        """Seconds until a report that is sent from now on is acknowledged."""
        began = time.monotonic()
        wait_for(
            "a report is acknowledged",
            lambda: any(answer.status == 200 for answer in self.since(began)),
            seconds=120,
            every=0.02,
        )
        return time.monotonic() - began

    def check(self) -> None:
        """Acknowledged reports are folded exactly once."""
        wait_for("everything is folded", self.stack.folded, seconds=120, every=0.05)
        sums = (
            "SELECT coalesce(sum(calls), 0) FROM version_hour JOIN series ON series.id = series_id"
            " JOIN model_version ON model_version.id = series.version_id WHERE "
            f"model_version.name = '{self.version}'"
        )
        assert self.stack.rows(sums) == [(CALLS * self.acked,)]

    def _run(self) -> None:
        while not self._over.is_set():
            request = request_make(
                version=self.version,
                instance=self._instance,
                first_seq=self.acked + 1,
                window=10.0,
                end=time.time(),
            )
            body = dumps(request)
            while self._send(body).status != 200:
                time.sleep(self._pause)
            self.acked += 1
            time.sleep(self._pause)

    def _send(self, body: bytes) -> Answer:
        began = time.monotonic()
        status, retry_after = 0, ""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", "/api/v1/reports", body, headers)
            response = connection.getresponse()
            answered = json.loads(response.read())
            assert response.status != 200 or answered["acked"]
            status, retry_after = response.status, response.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException, ValueError):
            pass
        answer = Answer(began, status, retry_after, time.monotonic() - began)
        self.answers.append(answer)
        return answer
