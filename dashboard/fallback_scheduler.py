"""Fallback scheduler: a thread of each worker that runs overdue stages, reports Redis outages and
ends a stuck worker.

Celery beat and Redis are the fast path between stages, not a requirement. Every second the thread:

1. Probes Redis, and logs when Redis fails or recovers.
2. Runs each stage whose slots no process has claimed within its grace period, one after the other.
3. Checks the watchdog. A worker whose consumer no longer reads tasks ends, and its supervisor
   starts a new one.

Invariants: a stage that is active in this worker is not started again here, as far as the worker
can know without Redis. Slots in the database (`job_slots`) prevent a second run of a slot across
workers. A failed sweep does not end the thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

from celery import Celery, signals
from celery.worker import state
from django.db import DatabaseError, close_old_connections, connection

from dashboard.common.job_slots import is_job_overdue
from dashboard.common.liveness import last_fold_at
from dashboard.common.redis_status import BROKER
from dashboard.ingest.selectors import read_inbox_age
from dashboard.pipeline import STAGES, Stage

logger = logging.getLogger(__name__)

TICK_S = 1.0
GRACE_BOUNDS_S = 4.0, 60.0
"""Seconds by which a stage may be late before it runs here: its interval, within these bounds."""
STUCK_AFTER_S = 60.0
"""Seconds without progress despite queued work, after which a worker ends."""
TASK_STATE_STALE_AFTER_S = 10.0
"""Seconds after which a task no longer counts as active while Redis is away: the event loop that
would record its end waits for Redis."""
SHUTDOWN_TIMEOUT_S = 15.0
STUCK_EXIT_CODE = 70


class Watchdog:
    """Watchdog: decides whether this worker still makes progress; called every second."""

    def __init__(self) -> None:
        self._received = self._idle_since = time.monotonic()

    def received(self, **_: Any) -> None:
        """Records a task received from Redis."""
        self._received = time.monotonic()

    def find_stuck_reason(
        self, *, waiting: int | None, working: bool, oldest: float | None, folded: float
    ) -> str:
        """Returns why this worker should restart; empty if it should not.

        `waiting` is the number of tasks in Redis, None during an outage. `oldest` is the age of the
        oldest report in the inbox, and `folded` the time since this worker's last fold, in seconds.
        """
        now = time.monotonic()
        if not waiting or working:
            self._idle_since = now
        if now - max(self._idle_since, self._received) > STUCK_AFTER_S:
            return (
                f"{waiting} tasks are queued in Redis, and this worker has taken none for "
                f"{STUCK_AFTER_S:.0f} s"
            )
        if oldest is not None and min(oldest, folded) > STUCK_AFTER_S:
            return (
                f"the oldest report has waited for {oldest:.0f} s, and this worker has folded "
                f"nothing for {folded:.0f} s"
            )
        return ""


class FallbackScheduler(threading.Thread):
    """The thread of the fallback scheduler."""

    def __init__(self, app: Celery) -> None:
        super().__init__(name="compilewatch-sweeper", daemon=True)
        self._app = app
        self._stopping = threading.Event()
        self._began = time.monotonic()
        self._database_away = False
        self.watchdog = Watchdog()

    def run(self) -> None:
        """Runs until the worker stops."""
        while not self._stopping.wait(TICK_S):
            waiting = BROKER.probe()
            try:
                close_old_connections()
                self._sweep(away=waiting is None)
                self._watch(waiting)
                self._database(None)
            except DatabaseError as error:
                self._database(error)
            except Exception:
                logger.exception("a sweep on the worker's own timer failed")
        connection.close()

    def stop(self, *, wait: float = 0.0) -> None:
        """Starts no further sweep, and waits up to `wait` seconds for the current one."""
        self._stopping.set()
        if wait:
            self.join(wait)

    def _sweep(self, *, away: bool = False) -> None:
        for stage in STAGES:
            if self._stopping.is_set():
                return
            # A long task claims no further slots, and a second run would only compete for the
            # processor.
            if stage.task not in _list_active_tasks(away=away) and is_overdue(stage):
                self._app.tasks[stage.task].run(swept=True)

    def _watch(self, waiting: int | None) -> None:
        lives = time.monotonic() - self._began
        folded = min(lives, time.monotonic() - last_fold_at())
        working = bool(state.active_requests)
        reason = self.watchdog.find_stuck_reason(
            waiting=waiting, working=working, oldest=read_inbox_age(), folded=folded
        )
        if reason:
            logger.error("this worker exits so that its supervisor restarts it: %s.", reason)
            self._stopping.set()
            state.should_stop = STUCK_EXIT_CODE  # type: ignore[assignment]
            # A consumer that hangs ignores the stop flag.
            last = threading.Timer(SHUTDOWN_TIMEOUT_S, os._exit, [STUCK_EXIT_CODE])
            last.daemon = True
            last.start()

    def _database(self, error: DatabaseError | None) -> None:
        if error is not None and not self._database_away:
            logger.warning(
                "the database is unavailable (%s); this worker continues when the database "
                "is back.",
                str(error).strip().split("\n")[0],
            )
        if error is None and self._database_away:
            logger.warning("the database is available again.")
        self._database_away = error is not None


class BrokerProber(threading.Thread):
    """Thread of beat that logs when Redis fails and when Redis is back."""

    def __init__(self) -> None:
        super().__init__(name="compilewatch-prober", daemon=True)

    def run(self) -> None:
        """Runs while beat runs."""
        while True:
            BROKER.probe()
            time.sleep(TICK_S)


def _list_active_tasks(*, away: bool) -> set[str]:
    """Names of the tasks that the processes of this worker run, as far as known without Redis."""
    # The consumer's thread changes this set concurrently, so list() copies it in one step.
    requests = [reference() for reference in list(state.active_requests.data)]  # type: ignore[attr-defined]
    seen = [request for request in requests if request is not None]
    return {
        request.name
        for request in seen
        if not (away and time.time() - (request.time_start or 0.0) > TASK_STATE_STALE_AFTER_S)
    }


def is_overdue(stage: Stage) -> bool:
    """True if no process has started the stage within its grace period."""
    least, most = GRACE_BOUNDS_S
    return is_job_overdue(
        name=stage.name, interval=stage.every, grace=min(max(stage.every, least), most)
    )


def start_fallback_scheduler(app: Celery) -> None:
    """Starts the fallback scheduler of this worker. The scheduler ends with the worker, after the
    current sweep."""
    sweeper = FallbackScheduler(app)
    signals.task_received.connect(sweeper.watchdog.received, weak=False)
    signals.worker_shutting_down.connect(lambda **_: sweeper.stop(), weak=False)
    signals.worker_shutdown.connect(lambda **_: sweeper.stop(wait=SHUTDOWN_TIMEOUT_S), weak=False)
    sweeper.start()
