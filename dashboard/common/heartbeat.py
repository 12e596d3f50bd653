"""Signs of life of workers and of beat, one row each, so that pages and supervisors see who is
there and who stopped."""

import logging
import multiprocessing
import threading
from collections.abc import Callable

from django.db import DatabaseError, connection

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction

logger = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S = 5.0
HEARTBEAT_RETENTION_S = 86400.0

_UPSERT_SQL = (
    "INSERT INTO heartbeat (name, kind, seen_at, folded_at, broker) VALUES (%s, %s, %s, "
    "%s, %s) ON CONFLICT (name)"
    " DO UPDATE SET kind = excluded.kind, seen_at = excluded.seen_at, folded_at = "
    "excluded.folded_at, broker = excluded.broker"
)
_DELETE_EXPIRED_SQL = "DELETE FROM heartbeat WHERE seen_at < %s"

# Made before a worker forks: its processes write the same place.
_fold_ended_at = multiprocessing.RawValue("d", 0.0)


def record_fold_end() -> None:
    """A fold of this worker came to its end, whether or not there was anything to fold: its tasks
    reach it and its database answers."""
    _fold_ended_at.value = clock.unix()


def reset_fold_end() -> None:
    """As in a worker that has not folded yet."""
    _fold_ended_at.value = 0.0


class HeartbeatThread:
    """A thread that says every few seconds that its process lives; a database that is away costs
    the beat and nothing else."""

    def __init__(self, *, name: str, kind: str, broker: Callable[[], str]) -> None:
        self._name, self._kind, self._broker = name[:128], kind, broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compilewatch-heart", daemon=True)

    def start(self) -> None:
        """Begins to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it; the row stays and grows old, which is how others see that the process ended."""
        self._stopping.set()

    def _run(self) -> None:
        while True:
            try:
                heartbeat_write(name=self._name, kind=self._kind, broker=self._broker())
            except DatabaseError as error:
                logger.warning(
                    "the heartbeat of %s was not noted: %s", self._name, str(error).strip()
                )
            finally:
                # Nothing may be left open here when the pool forks its children.
                connection.close()
            if self._stopping.wait(HEARTBEAT_INTERVAL_S):
                return


def heartbeat_write(*, name: str, kind: str, broker: str = "") -> None:
    """The process lives, when it last ended a fold, why Redis does not answer it; processes of the
    day before are forgotten."""
    folded = clock.at(_fold_ended_at.value) if kind == "worker" and _fold_ended_at.value else None
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(_UPSERT_SQL, [name, kind, clock.now(), folded, broker[:200]])
        cursor.execute(_DELETE_EXPIRED_SQL, [clock.at(clock.unix() - HEARTBEAT_RETENTION_S)])
