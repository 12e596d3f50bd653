"""Demo sender: posts the reports of the simulated fleet to the report endpoint, first the past,
then live."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import MAX_REPORTS, VERSION, Report, Request

from dashboard.demo.simulated_fleet import SimulatedInstance

LIVE_WINDOW_S = 10.0
LIVE_WINDOWS_PER_MINUTE = 6
RESUME_WITHIN_S = 6 * 3600.0


class DemoRefusalError(Exception):
    """The dashboard did not acknowledge the reports of the simulated fleet."""


class Endpoint:
    """Persistent connection to the report endpoint, reopened after a failure."""

    def __init__(self, *, host: str = "127.0.0.1", port: int, key: str) -> None:
        self._host, self._port, self._key = host, port, key
        self._connection: http.client.HTTPConnection | None = None

    def send(self, instance: SimulatedInstance, reports: list[Report]) -> None:
        """Sends up to 32 reports of one instance and checks each acknowledgement. Waits while the
        dashboard is busy, for up to 30 attempts.

        Raises DemoRefusalError.
        """
        body = gzip.compress(dumps(Request(VERSION, time.time(), instance.identity, reports)), 1)
        for _ in range(30):
            status, answer = self._post(body)
            if status == 200:
                if answer.get("rejected"):
                    raise DemoRefusalError(f"reports were rejected: {answer['rejected'][0]}")
                return
            if status not in (0, 429, 503):
                raise DemoRefusalError(
                    f"the endpoint answered {status}: {answer.get('detail', '')}"
                )
            time.sleep(1.0)
        raise DemoRefusalError("the endpoint was busy for 30 s")

    def _post(self, body: bytes) -> tuple[int, dict[str, list[object] | str]]:
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
        }
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=20)
            self._connection.request("POST", "/api/v1/reports", body, headers)
            response = self._connection.getresponse()
            return response.status, json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            return 0, {}


def build_past_reports(
    instance: SimulatedInstance, *, start_minute: int, first: int = 1, last: int | None = None
) -> Iterator[Report]:
    """Yields one window per minute from the instance's first minute to the start of the demo, or
    the windows from number `first` to number `last`."""
    minutes = (instance.last_minute or start_minute) - instance.first_minute
    for n in range(first - 1, minutes if last is None else min(last, minutes)):
        begin = (instance.first_minute + n) * 60.0
        yield instance.report(seq=n + 1, start=begin, end=begin + 60.0)


def build_live_reports(
    instance: SimulatedInstance, *, start_minute: int, since: float, until: float
) -> Iterator[Report]:
    """Yields windows of 10 s since the start of the demo. Missed whole minutes are merged, as after
    an outage."""
    first_seq = start_minute - instance.first_minute + 1
    begin = start_minute * 60.0
    k, last = round((since - begin) / LIVE_WINDOW_S), int((until - begin) // LIVE_WINDOW_S)
    while k < last:
        span = (
            LIVE_WINDOWS_PER_MINUTE
            if k % LIVE_WINDOWS_PER_MINUTE == 0 and last - k > 3 * LIVE_WINDOWS_PER_MINUTE
            else 1
        )
        report = instance.report(
            seq=first_seq + k,
            start=begin + k * LIVE_WINDOW_S,
            end=begin + (k + span) * LIVE_WINDOW_S,
        )
        yield replace(report, seq=(first_seq + k, first_seq + k + span - 1))
        k += span


def batch_reports(reports: Iterator[Report]) -> Iterator[list[Report]]:
    """Groups reports into requests of at most 32."""
    batch: list[Report] = []
    for report in reports:
        batch.append(report)
        if len(batch) == MAX_REPORTS:
            yield batch
            batch = []
    if batch:
        yield batch


class Progress:
    """Progress of the demo, kept in a file so that the next start continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.start_minute = 0
        self.seeded = False
        self.sent_until = 0.0

    def load(self, *, now: float) -> None:
        """Continues a demo that stopped less than 6 h ago, else begins a new fleet at the current
        minute."""
        try:
            found = json.loads(self._path.read_text())
            self.start_minute, self.seeded, self.sent_until = (
                int(found["start_minute"]),
                bool(found["seeded"]),
                float(found["sent_until"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            self.start_minute = 0
        if self.start_minute == 0 or now - self.sent_until > RESUME_WITHIN_S:
            self.start_minute, self.seeded = int(now // 60), False
            self.sent_until = self.start_minute * 60.0
            self.save()

    def save(self) -> None:
        """Replaces the file atomically."""
        made = self._path.with_suffix(".new")
        made.write_text(
            json.dumps(
                {
                    "start_minute": self.start_minute,
                    "seeded": self.seeded,
                    "sent_until": self.sent_until,
                }
            )
        )
        made.replace(self._path)


def send_past_reports(
    fleet: list[SimulatedInstance],
    endpoint: Endpoint,
    progress: Progress,
    *,
    tell: Callable[[int, int], None],
) -> int:
    """Sends the past of every instance and returns the number of reports.

    `tell(done, total)` is called after each request.
    """
    total = sum(
        (instance.last_minute or progress.start_minute) - instance.first_minute
        for instance in fleet
    )
    done = 0
    for instance in fleet:
        for batch in batch_reports(
            build_past_reports(instance, start_minute=progress.start_minute)
        ):
            endpoint.send(instance, batch)
            done += len(batch)
            tell(done, total)
    progress.seeded = True
    progress.save()
    return total


def send_live_reports(
    fleet: list[SimulatedInstance],
    endpoint: Endpoint,
    progress: Progress,
    stopping: threading.Event,
) -> None:
    """Sends live windows until `stopping` is set."""
    while not stopping.is_set():
        until = time.time() // LIVE_WINDOW_S * LIVE_WINDOW_S
        for instance in (one for one in fleet if one.last_minute is None):
            for batch in batch_reports(
                build_live_reports(
                    instance,
                    start_minute=progress.start_minute,
                    since=progress.sent_until,
                    until=until,
                )
            ):
                endpoint.send(instance, batch)
        progress.sent_until = max(progress.sent_until, until)
        progress.save()
        stopping.wait(LIVE_WINDOW_S - time.time() % LIVE_WINDOW_S + 0.2)
