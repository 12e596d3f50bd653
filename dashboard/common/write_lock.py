"""Write lock of SQLite: one per process, first come, first served. PostgreSQL does its own
locking."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

from django.db import OperationalError, connection, transaction

from dashboard.common.fatal_disk_errors import exit_on_lost_write


class FifoLock:
    """Reentrant lock with first-in, first-out order."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[tuple[Lock, int]] = deque()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self) -> None:
        """Waits until every earlier caller has released the lock."""
        me = get_ident()
        with self._guard:
            if self._owner in (None, me):
                self._owner = me
                self._depth += 1
                return
            gate = Lock()
            gate.acquire()
            self._waiting.append((gate, me))
        gate.acquire()

    def release(self) -> None:
        """Releases the lock, and passes the lock to the caller that has waited longest."""
        with self._guard:
            self._depth -= 1
            if self._depth:
                return
            if not self._waiting:
                self._owner = None
                return
            gate, self._owner = self._waiting.popleft()
            self._depth = 1
            gate.release()


_SQLITE_WRITERS = FifoLock()


@contextmanager
def write_transaction() -> Iterator[None]:
    """Opens a transaction that writes. On SQLite, writers of this process queue instead of racing
    for the file lock.

    Open it before any other transaction of this thread. A thread that holds the file lock while it
    queues blocks the queue.
    """
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    _SQLITE_WRITERS.acquire()
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        exit_on_lost_write(error)
        raise
    finally:
        _SQLITE_WRITERS.release()


def acquire_advisory_lock(what: str) -> None:
    """Takes a lock by name until the transaction ends. SQLite has only one writer and needs
    none."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"compilewatch {what}"])
