"""Admission control: a limit on concurrent requests per process, and a quota per project."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from threading import Lock

from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.selectors import count_inbox_reports_up_to
from dashboard.projects.rate_limit import read_rate, read_waiting_limit
from dashboard.vocabulary.numbers import significant

MAX_CONCURRENT_REQUESTS = 64
MAX_REQUESTS_WHILE_STALLED = 8
"""Requests that may wait for a database that commits nothing. The other threads of the server stay
free for readers."""

STALLED_AFTER_S = 1.0
BURST_S = 2.0
COUNT_INTERVAL_S = 2.0
"""Seconds between two counts of a project's waiting reports, in each process."""


class Admission:
    """Counts the requests in progress and refuses one above the limit before its body is read. Used
    in a `with` statement."""

    def __init__(self, limit: int = MAX_CONCURRENT_REQUESTS) -> None:
        self._limit, self.under_way, self._lock = limit, 0, Lock()
        self._waiting_since: float | None = None

    def __enter__(self) -> None:
        """Takes a place, or raises RefusalError with a random retry time, so that clients do not
        all return at once."""
        with self._lock:
            if self.under_way >= self._limit or (
                self.under_way >= MAX_REQUESTS_WHILE_STALLED and self._is_stalled()
            ):
                raise RefusalError(
                    "busy",
                    "Too many requests are in progress; send it again.",
                    retry_after=random.randint(5, 30),
                )
            self.under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.under_way -= 1

    def on_commit_start(self) -> None:
        """Called when the committer has work that is not durable yet."""
        self._waiting_since = time.monotonic()

    def on_commit_end(self) -> None:
        """Called when the database answered the committer, with success or an error."""
        self._waiting_since = None

    def _is_stalled(self) -> bool:
        since = self._waiting_since
        return since is not None and time.monotonic() - since > STALLED_AFTER_S


ADMISSION = Admission()


class TokenBucket:
    """Token bucket: refills at a rate. A request may overdraw it once; the next request waits."""

    def __init__(self, rate: float) -> None:
        self.rate, self._level, self._filled, self._lock = (
            rate,
            rate * BURST_S,
            time.monotonic(),
            Lock(),
        )
        self._waiting, self._counted_at = 0, -math.inf

    def wait(self) -> float:
        """Seconds until the level is above zero; 0 if it is."""
        with self._lock:
            now = time.monotonic()
            self._level = min(self.rate * BURST_S, self._level + (now - self._filled) * self.rate)
            self._filled = now
            return max(0.0, -self._level / self.rate)

    def waiting(self, project_id: int, most: int) -> int:
        """Number of the project's waiting reports: the last count, up to `most`, plus the reports
        received here since. The count is repeated every few seconds."""
        now = time.monotonic()
        with self._lock:
            due = now - self._counted_at > COUNT_INTERVAL_S
            self._counted_at = now if due else self._counted_at
        if due:
            counted = count_inbox_reports_up_to(project_id, most)
            with self._lock:
                self._waiting = counted
        return self._waiting

    def charge(self, reports: int) -> None:
        """Takes one token per report."""
        with self._lock:
            self._level -= max(1, reports)
            self._waiting += reports


_buckets: dict[int, TokenBucket] = {}


def find_bucket(project_id: int, settings: Mapping[str, object]) -> TokenBucket:
    """The project's bucket in this process, at the rate of the project's settings."""
    rate = read_rate(settings)
    bucket = _buckets.get(project_id)
    if bucket is None or bucket.rate != rate:
        bucket = _buckets[project_id] = TokenBucket(rate)
    return bucket


def quota_check(project_id: int, settings: Mapping[str, object]) -> TokenBucket:
    """Returns the project's bucket to charge. Raises RefusalError if the project exceeds its quota
    or if too many of its reports wait to be folded."""
    bucket, most = find_bucket(project_id, settings), read_waiting_limit(settings)
    _rate_check(bucket)
    if bucket.waiting(project_id, most) >= most:
        detail = f"{most:,} or more reports of the project are queued, which is its limit; wait."
        raise RefusalError("too_many", detail, retry_after=random.randint(15, 45))
    return bucket


def _rate_check(bucket: TokenBucket) -> None:
    wait = bucket.wait()
    if wait > 0:
        raise RefusalError(
            "too_many",
            f"The project sends more than {significant(bucket.rate)} reports a second.",
            retry_after=int(wait) + 1,
        )
