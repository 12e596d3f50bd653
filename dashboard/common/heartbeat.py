"""Heartbeats of workers: one row each, for pages and supervisors, and the time of the last fold."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

logger = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S = 5.0
HEARTBEAT_RETENTION_S = 86400.0
WORKER = "worker"
"""The kind of a heartbeat; releases up to the previous one also write `beat`."""

_UPSERT_SQL = (
    "INSERT INTO heartbeat (name, kind, seen_at, folded_at, broker) VALUES (%s, %s, %s, "
    "%s, %s) ON CONFLICT (name)"
    " DO UPDATE SET kind = excluded.kind, seen_at = excluded.seen_at, folded_at = "
    "excluded.folded_at, broker = excluded.broker"
)
_DELETE_EXPIRED_SQL = "DELETE FROM heartbeat WHERE seen_at < %s"

# Created before a worker forks, so that its processes share the values.
_fold_ended_at = multiprocessing.RawValue("d", 0.0)
_last_fold_at = multiprocessing.RawValue("d", 0.0)


def record_fold_end() -> None:
    """Records the end of a fold, with or without reports: tasks reach this worker, and its database
    answers."""
    _fold_ended_at.value = clock.unix()


def reset_fold_end() -> None:
    """Resets the record to the state of a worker that has not folded."""
    _fold_ended_at.value = 0.0


def record_fold() -> None:
    """Records a fold of reports by this worker, on the monotonic clock."""
    _last_fold_at.value = time.monotonic()


def last_fold_at() -> float:
    """The monotonic time of the last fold of reports by any process of this worker; 0 if there was
    none."""
    return float(_last_fold_at.value)


class HeartbeatThread:
    """Thread that writes a heartbeat every few seconds. A database outage affects only the
    heartbeat."""

    def __init__(self, *, name: str, broker: Callable[[], str]) -> None:
        self._name, self._broker = name[:128], broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compilewatch-heart", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread. The row remains and ages, which shows that the process ended."""
        self._stopping.set()

    def _run(self) -> None:
        while True:
            try:
                heartbeat_write(name=self._name, broker=self._broker())
            except DatabaseError as error:
                logger.warning(
                    "the heartbeat of %s was not written: %s", self._name, str(error).strip()
                )
            finally:
                # No connection may be open here when the pool forks its children.
                connection.close()
            if self._stopping.wait(HEARTBEAT_INTERVAL_S):
                return


def heartbeat_write(*, name: str, broker: str = "") -> None:
    """Writes a heartbeat: time, last end of a fold, and the broker that does not answer. Deletes
    heartbeats older than a day."""
    folded = clock.at(_fold_ended_at.value) if _fold_ended_at.value else None
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(_UPSERT_SQL, [name, WORKER, clock.now(), folded, broker[:200]])
        cursor.execute(_DELETE_EXPIRED_SQL, [clock.at(clock.unix() - HEARTBEAT_RETENTION_S)])
