"""Keeps a flood from taking everything: a limit on requests under way in a process, and a rate per project."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from threading import Lock

from dashboard.ingest.body import Refused
from dashboard.projects.rate import rate_of

MAX_UNDER_WAY = 64
MAX_WHILE_STALLED = 8
"""Requests that may wait for a database that commits nothing; the server's other threads stay free for those who only read."""

STALLED_AFTER = 1.0
BURST_SECONDS = 2.0


class Admission:
    """Counts the requests under way; one too many is sent away before its body is read. Used in a `with` statement."""

    def __init__(self, limit: int = MAX_UNDER_WAY) -> None:
        self._limit, self.under_way, self._lock = limit, 0, Lock()
        self._waiting_since: float | None = None

    def __enter__(self) -> None:
        """Takes a place, or raises Refused with a random time to come back, so that not all come back at once."""
        with self._lock:
            if self.under_way >= self._limit or (self.under_way >= MAX_WHILE_STALLED and self._stalled()):
                raise Refused("busy", "Too many requests are under way.", retry_after=random.randint(5, 30))
            self.under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.under_way -= 1

    def commit_begun(self) -> None:
        """The committer has work and nothing is durable yet."""
        self._waiting_since = time.monotonic()

    def commit_ended(self) -> None:
        """The committer got an answer from the database, whatever it was."""
        self._waiting_since = None

    def _stalled(self) -> bool:
        since = self._waiting_since
        return since is not None and time.monotonic() - since > STALLED_AFTER


ADMISSION = Admission()


class Bucket:
    """Tokens that come back at a rate; a request may overdraw it once, the next one waits."""

    def __init__(self, rate: float) -> None:
        self.rate, self._level, self._filled, self._lock = rate, rate * BURST_SECONDS, time.monotonic(), Lock()

    def wait(self) -> float:
        """Seconds until the bucket is above zero; 0 if it is."""
        with self._lock:
            now = time.monotonic()
            self._level = min(self.rate * BURST_SECONDS, self._level + (now - self._filled) * self.rate)
            self._filled = now
            return max(0.0, -self._level / self.rate)

    def charge(self, reports: int) -> None:
        """Takes a token per report."""
        with self._lock:
            self._level -= max(1, reports)


_buckets: dict[int, Bucket] = {}


def bucket_of(project_id: int, settings: Mapping[str, object]) -> Bucket:
    """The project's bucket in this process, with the rate its settings give."""
    rate = rate_of(settings)
    bucket = _buckets.get(project_id)
    if bucket is None or bucket.rate != rate:
        bucket = _buckets[project_id] = Bucket(rate)
    return bucket


def rate_check(bucket: Bucket) -> None:
    """Raises Refused if the project has sent more than its rate allows."""
    wait = bucket.wait()
    if wait > 0:
        raise Refused("too_many", f"The project sends more than {bucket.rate:g} reports a second.", retry_after=int(wait) + 1)
