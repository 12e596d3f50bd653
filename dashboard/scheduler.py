"""Scheduler: two threads of each worker that start every stage of the pipeline on time.

The sender wakes at each whole second. It sends the task of each stage whose slot has begun to
Redis, and any worker takes it. A key per slot in Redis lets one sender of all workers send it.

The sweeper needs no Redis. Every second it:

1. Probes Redis, and logs when Redis fails or recovers.
2. Runs stages itself, one after the other: without Redis those whose slot has no claim; with
   Redis those whose slots no process has claimed within a grace period.
3. Checks the watchdog. A worker whose consumer no longer reads tasks ends, and its supervisor
   starts a new one.

The embedded server starts only the sender, because its broker is in its own memory. Its sender
looks for the rows that wait for a stage, and sends an idle stage every 10 s only. Frequent stages
claim no slot there.

Invariants: any number of workers is harmless, because a task first claims its slot in the database
(`job_slots`). A stage that is active in this worker is not started again by the sweeper, as far as
the worker can know without Redis. A failure ends neither thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from typing import Any

from celery import Celery, signals
from celery.worker import state
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from kombu.exceptions import OperationalError

from dashboard.common import clock
from dashboard.common.heartbeat import last_fold_at
from dashboard.common.job_slots import FINISH_RECORDED_FROM_S, is_job_overdue
from dashboard.common.redis_status import BROKER
from dashboard.ingest.selectors import read_inbox_age
from dashboard.pipeline import STAGES, Stage

logger = logging.getLogger(__name__)

TICK_S = 1.0
IDLE_INTERVAL_S = 10.0
"""Seconds between two runs of an idle stage in the embedded server."""
GRACE_BOUNDS_S = 4.0, 60.0
"""Seconds by which a stage may be late before it runs here: its interval, within these bounds."""
STUCK_AFTER_S = 60.0
"""Seconds without progress despite queued work, after which a worker ends."""
TASK_STATE_STALE_AFTER_S = 4.0
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


class TaskSender(threading.Thread):
    """The thread that sends the task of each slot when the slot begins."""

    def __init__(self, app: Celery) -> None:
        super().__init__(name="compilewatch-sender", daemon=True)
        self._app = app
        self._stopping = threading.Event()
        self._id = uuid.uuid4().hex
        self._sent: dict[str, int] = {}
        """By stage: the last slot whose task this or another worker sent."""

    def run(self) -> None:
        """Runs until the worker stops."""
        while True:
            try:
                self.send_due()
            except OperationalError as error:
                # Redis can fail after it took the keys. The sweeper runs the stages meanwhile.
                BROKER.failed(error)
            except Exception:
                logger.exception("the scheduler did not send the tasks of this second")
            if self._stopping.wait(TICK_S - time.time() % TICK_S):
                connection.close()
                return

    def stop(self) -> None:
        """Sends no further task."""
        self._stopping.set()

    def send_due(self) -> None:
        """Sends the task of each stage whose slot has begun, unless another worker sends it. A task
        that could not be sent is sent again in the next second."""
        slots = {stage.name: current_slot(stage) for stage in STAGES}
        for stage in self._claim(slots):
            self._app.tasks[stage.task].apply_async(
                kwargs={"swept": is_claim_needed(stage)}, expires=stage.expiry, retry=False
            )
            self._sent[stage.name] = slots[stage.name]

    def _claim(self, slots: dict[str, int]) -> list[Stage]:
        """The stages whose task this worker has yet to send in these slots."""
        due = [stage for stage in STAGES if slots[stage.name] != self._sent.get(stage.name)]
        if settings.EMBEDDED:
            return [stage for stage in due if is_idle_run_due(stage) or not is_idle(stage)]
        keys = {f"compilewatch:slot:{one.name}:{slots[one.name]}": one for one in due}
        expiries = {key: stage.expiry for key, stage in keys.items()}
        claimed = BROKER.claim(expiries, owner=self._id)
        if claimed is None:
            return []
        for key in keys.keys() - claimed:
            self._sent[keys[key].name] = slots[keys[key].name]
        return [stage for key, stage in keys.items() if key in claimed]


class Sweeper(threading.Thread):
    """The thread that runs the stages that no task has started, and checks the watchdog."""

    def __init__(self, app: Celery) -> None:
        super().__init__(name="compilewatch-sweeper", daemon=True)
        self._app = app
        self._stopping = threading.Event()
        self._began = time.monotonic()
        self._database_away = False
        self._swept: dict[str, int] = {}
        self.watchdog = Watchdog()

    def run(self) -> None:
        """Runs until the worker stops."""
        while not self._stopping.wait(TICK_S):
            try:
                waiting = BROKER.probe()
                close_old_connections()
                self._sweep(away=waiting is None)
                self._watch(waiting)
                self._database(None)
            except DatabaseError as error:
                self._database(error)
            except Exception:
                logger.exception("a sweep of the scheduler failed")
        connection.close()

    def stop(self, *, wait: float = 0.0) -> None:
        """Starts no further sweep, and waits up to `wait` seconds for the current one."""
        self._stopping.set()
        if wait:
            self.join(wait)

    def _sweep(self, *, away: bool = False) -> None:
        database_error: DatabaseError | None = None
        for stage in STAGES:
            if self._stopping.is_set():
                return
            # A long task claims no further slots, and a second run would only compete for the
            # processor.
            if stage.task in _list_active_tasks(away=away):
                continue
            slot = current_slot(stage)
            if slot != self._swept.get(stage.name) if away else is_overdue(stage):
                try:
                    self._app.tasks[stage.task].run(swept=True)
                    self._swept[stage.name] = slot
                except DatabaseError as error:
                    database_error = error
                except Exception:
                    # The other stages do not wait for one that fails.
                    logger.exception("the stage %s failed in the scheduler", stage.name)
        if database_error is not None:
            raise database_error

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


def is_claim_needed(stage: Stage) -> bool:
    """False for a frequent stage of the embedded server: its only sender sends each slot once, and
    a claim would sync the disk."""
    return not settings.EMBEDDED or stage.every >= FINISH_RECORDED_FROM_S


def is_idle(stage: Stage) -> bool:
    """True if no row waits for the stage."""
    if not stage.waiting:
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute(stage.waiting)
            return cursor.fetchone() is None
    except DatabaseError:
        return False  # the stage meets the same error, and logs it


def is_idle_run_due(stage: Stage) -> bool:
    """True in the slots in which a stage runs without work too: the heartbeat needs a recent
    fold."""
    return clock.unix() % IDLE_INTERVAL_S < stage.every


def current_slot(stage: Stage) -> int:
    """The number of the stage's slot at present."""
    return int(clock.unix() // stage.every)


class Scheduler:
    """The threads of one worker: the sender and, with Redis, the sweeper."""

    def __init__(self, app: Celery) -> None:
        self._sender = TaskSender(app)
        self._sweeper = None if settings.EMBEDDED else Sweeper(app)

    def start(self) -> None:
        """Starts the threads."""
        self._sender.start()
        if self._sweeper is not None:
            signals.task_received.connect(self._sweeper.watchdog.received, weak=False)
            self._sweeper.start()

    def stop(self, *, wait: float = 0.0) -> None:
        """Starts no further stage, and waits up to `wait` seconds for the stage that runs here."""
        self._sender.stop()
        if self._sweeper is not None:
            self._sweeper.stop(wait=wait)
