"""Thread lanes: separate threads for health, probes, reports and pages, so that no kind of request
waits for another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from django.conf import settings

from dashboard.ingest.body_decoder import RefusalError

logger = logging.getLogger(__name__)

LANE_THREADS = {"health": 1, "probes": 2, "reports": 32, "pages": 4}
"""Threads per lane. Health checks and refusals need no database. The small number for pages leaves
pool connections and interpreter time to reports."""

LANE_BY_PATH = {
    "/healthz": "health",
    "/readyz": "probes",
    "/metrics": "probes",
    "/api/v1/reports": "reports",
    "/api/v1/otlp/v1/metrics": "reports",
}
MAX_WAITING_REQUESTS, MAX_WAITING_BYTES = 512, 16 << 20
MAX_WAIT_S = 10.0
"""Maximum requests, bytes and seconds of waiting in a lane."""

BUSY_DETAIL = "Too many requests are queued; try again."
Job = tuple[float, int, Callable[[bool], None]]


class Lane:
    """A queue with its threads, which start with the first jobs."""

    def __init__(self, name: str, threads: int) -> None:
        self._name, self._size = name, threads
        self._threads: list[Thread] = []
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = Lock()
        self._bytes = 0

    def put(self, run: Callable[[bool], None], size: int = 0) -> None:
        """Queues a job. A thread calls `run`, with False if the job waited too long to be answered.

        Raises RefusalError if the queue is full.
        """
        with self._lock:
            if self._jobs.qsize() >= MAX_WAITING_REQUESTS or self._bytes + size > MAX_WAITING_BYTES:
                raise RefusalError("busy", BUSY_DETAIL, retry_after=5)
            self._bytes += size
            if len(self._threads) < self._size:
                self._threads.append(
                    Thread(
                        target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True
                    )
                )
                self._threads[-1].start()
        self._jobs.put((time.monotonic(), size, run))

    def stop(self, deadline: float) -> None:
        """Lets running jobs finish until the deadline (monotonic), and drops queued jobs."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            since, size, run = job
            if size:
                with self._lock:
                    self._bytes -= size
            try:
                run(time.monotonic() - since <= MAX_WAIT_S)
            except Exception:
                logger.exception("a request could not be answered")


class Lanes:
    """The lanes of a process."""

    def __init__(self) -> None:
        self._lanes = {name: Lane(name, threads) for name, threads in LANE_THREADS.items()}
        self.refusing = self._lanes["health"]
        """Lane for answers that need no database and take almost no time."""

    def of(self, path: str) -> Lane:
        """The lane of a path, with or without the URL prefix."""
        return self._lanes[LANE_BY_PATH.get(path.removeprefix(settings.PREFIX), "pages")]

    def stop(self, timeout: float) -> None:
        """Ends all threads within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        for lane in self._lanes.values():
            lane.stop(deadline)
