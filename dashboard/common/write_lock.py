"""The one process-wide, first-come write lock for SQLite; on PostgreSQL the database does the
locking."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

from django.db import OperationalError, connection, transaction

from dashboard.common.fatal_disk_errors import exit_on_lost_write


class FifoLock:
    """A lock that is handed over in the order of asking; the thread that holds it may take it
    again."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[tuple[Lock, int]] = deque()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self) -> None:
        """Waits for everyone who asked before."""
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
        """Hands the lock to whoever has waited longest."""
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
    """A transaction that writes. On SQLite writers of this process wait in line instead of racing
    for the file's lock.

    Ask for it before any other transaction is open in this thread: one that holds the file's lock
    and then waits in line stops the line."""
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
    """Within a transaction: whoever asks for the same waits until it ends. On SQLite there is one
    writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"compilewatch {what}"])
