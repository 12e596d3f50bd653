"""A worker's own timer: it sweeps what nobody has swept, says when Redis is away, and ends a worker
that no longer does its work.

Celery beat and Redis are the quick way from one stage to the next, not a condition: a stage whose
slots nobody claims is run here, by a thread of the worker, and a worker whose consumer has gone
deaf ends itself, so that its supervisor starts it anew."""

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
"""Seconds a stage may be late before it is run here: its own interval, but at least and at most so
much."""
STUCK_AFTER_S = 60.0
"""Seconds in which a worker does nothing although there is work, until it ends itself."""
TASK_STATE_STALE_AFTER_S = 10.0
"""Seconds after which a task is not taken to be under way while Redis is away: the loop that would
read that it ended waits for Redis."""
SHUTDOWN_TIMEOUT_S = 15.0
STUCK_EXIT_CODE = 70


class Watchdog:
    """Whether this worker still does what it is there for; it is asked every second."""

    def __init__(self) -> None:
        self._received = self._idle_since = time.monotonic()

    def received(self, **_: Any) -> None:
        """A task came from Redis."""
        self._received = time.monotonic()

    def find_stuck_reason(
        self, *, waiting: int | None, working: bool, oldest: float | None, folded: float
    ) -> str:
        """Why this worker should be started anew, empty while it should not.

        `waiting` tasks in Redis, None when it is away; `oldest` is the age of the oldest report in
        the inbox and `folded` how long ago this worker folded one, in seconds."""
        now = time.monotonic()
        if not waiting or working:
            self._idle_since = now
        if now - max(self._idle_since, self._received) > STUCK_AFTER_S:
            return f"{waiting} tasks wait in Redis, and it has taken none for {STUCK_AFTER_S:.0f} s"
        if oldest is not None and min(oldest, folded) > STUCK_AFTER_S:
            return (
                f"the oldest report has waited for {oldest:.0f} s, and it has folded nothing "
                f"for {folded:.0f} s"
            )
        return ""


class FallbackScheduler(threading.Thread):
    """The thread."""

    def __init__(self, app: Celery) -> None:
        super().__init__(name="compilewatch-sweeper", daemon=True)
        self._app = app
        self._stopping = threading.Event()
        self._began = time.monotonic()
        self._database_away = False
        self.watchdog = Watchdog()

    def run(self) -> None:
        """Until the worker stops."""
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
                logger.exception("a sweep by the worker's own timer failed")
        connection.close()

    def stop(self, *, wait: float = 0.0) -> None:
        """Begins no further sweep; waits for the one under way."""
        self._stopping.set()
        if wait:
            self.join(wait)

    def _sweep(self, *, away: bool = False) -> None:
        for stage in STAGES:
            if self._stopping.is_set():
                return
            # A long task claims no further slots; a second one beside it would only take the
            # processor from it.
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
            logger.error("this worker ends so that its supervisor starts it anew: %s.", reason)
            self._stopping.set()
            state.should_stop = STUCK_EXIT_CODE  # type: ignore[assignment]
            # A consumer that hangs does not see that it should stop.
            last = threading.Timer(SHUTDOWN_TIMEOUT_S, os._exit, [STUCK_EXIT_CODE])
            last.daemon = True
            last.start()

    def _database(self, error: DatabaseError | None) -> None:
        if error is not None and not self._database_away:
            logger.warning(
                "the database cannot be used (%s); this worker goes on when it is back.",
                str(error).strip().split("\n")[0],
            )
        if error is None and self._database_away:
            logger.warning("the database can be used again.")
        self._database_away = error is not None


class BrokerProber(threading.Thread):
    """What beat has of it: says when Redis is away and when it is back."""

    def __init__(self) -> None:
        super().__init__(name="compilewatch-prober", daemon=True)

    def run(self) -> None:
        """As long as beat runs."""
        while True:
            BROKER.probe()
            time.sleep(TICK_S)


def _list_active_tasks(*, away: bool) -> set[str]:
    """Names of the tasks that this worker's own processes run, as far as it can know without
    Redis."""
    # The consumer's thread adds to this set meanwhile: a list is made of it in one step.
    requests = [reference() for reference in list(state.active_requests.data)]  # type: ignore[attr-defined]
    seen = [request for request in requests if request is not None]
    return {
        request.name
        for request in seen
        if not (away and time.time() - (request.time_start or 0.0) > TASK_STATE_STALE_AFTER_S)
    }


def is_overdue(stage: Stage) -> bool:
    """Whether nobody has begun the stage when somebody should have."""
    least, most = GRACE_BOUNDS_S
    return is_job_overdue(
        name=stage.name, interval=stage.every, grace=min(max(stage.every, least), most)
    )


def start_fallback_scheduler(app: Celery) -> None:
    """Starts the timer of this worker; it ends with the worker, after the sweep that is under
    way."""
    sweeper = FallbackScheduler(app)
    signals.task_received.connect(sweeper.watchdog.received, weak=False)
    signals.worker_shutting_down.connect(lambda **_: sweeper.stop(), weak=False)
    signals.worker_shutdown.connect(lambda **_: sweeper.stop(wait=SHUTDOWN_TIMEOUT_S), weak=False)
    sweeper.start()
