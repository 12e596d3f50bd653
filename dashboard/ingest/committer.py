"""One thread per process that commits: request threads hand it batches and wait, and one commit serves all that came meanwhile."""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, connection

from dashboard.ingest.batch import Batch
from dashboard.ingest.body import Refused
from dashboard.ingest.refusals import refusals_give_back, refusals_take
from dashboard.ingest.services import Stored, refusals_write, reports_store

logger = logging.getLogger(__name__)

GROUP = 64
PATIENCE = 3.0
REFUSALS_WRITTEN_EVERY = 2.0
WORTH_A_SECOND_TRY = 1.0

Waiting = tuple[Batch, "Future[Stored]"]
_STOP = None


class Committer:
    """Takes batches from any thread; its own thread is started by the first one, in the process that needs it."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._starting = Lock()
        self._thread: Thread | None = None
        self._refusals_due = 0.0
        os.register_at_fork(after_in_child=self._forget)

    def store(self, batch: Batch) -> Stored:
        """What became of the batch, once it is durable; Refused as busy if that takes too long."""
        self.start()
        future: Future[Stored] = Future()
        self._queue.put((batch, future))
        try:
            return future.result(timeout=PATIENCE)
        except TimeoutError:
            future.cancel()
            raise Refused("busy", "The database is too slow right now; send the reports again.", retry_after=5) from None

    def start(self) -> None:
        """Makes sure that the thread runs."""
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = Thread(target=self._run, name="compilewatch-committer", daemon=True)
                    self._thread.start()

    def stop(self) -> None:
        """Commits what waits, writes the counts of refusals, and ends the thread; the next batch starts another."""
        thread = self._thread
        if thread is not None:
            self._queue.put(_STOP)
            thread.join(timeout=PATIENCE)
            self._thread = None

    def _forget(self) -> None:
        self._queue, self._starting, self._thread = SimpleQueue(), Lock(), None

    def _run(self) -> None:
        going = True
        while going:
            group, going = self._next_group()
            if group:
                self._commit(group)
            if not going or time.monotonic() >= self._refusals_due:
                self._refusals_due = time.monotonic() + REFUSALS_WRITTEN_EVERY
                _write_refusals()
        connection.close()

    def _next_group(self) -> tuple[list[Waiting], bool]:
        """Whatever waits, up to 64 reports, and whether to go on: while one commit is under way the next group gathers by itself."""
        group: list[Waiting] = []
        reports = 0
        try:
            waiting = self._queue.get(timeout=REFUSALS_WRITTEN_EVERY)
            while waiting is not _STOP:
                batch, future = waiting
                if future.set_running_or_notify_cancel():
                    group.append(waiting)
                    reports += max(1, len(batch.items))
                if reports >= GROUP:
                    return group, True
                waiting = self._queue.get_nowait()
            return group, False
        except Empty:
            return group, True

    def _commit(self, group: list[Waiting]) -> None:
        try:
            results = _store_with_second_try([batch for batch, _ in group])
        except (DataError, IntegrityError) as error:
            if len(group) == 1:
                group[0][1].set_exception(error)
                return
            for waiting in group:  # one of them cannot be stored; the others shall not suffer for it
                self._commit([waiting])
        except BaseException as error:  # noqa: BLE001 - the request thread raises it, this thread goes on
            for _, future in group:
                future.set_exception(error)
        else:
            for (_, future), stored in zip(group, results, strict=True):
                future.set_result(stored)


def _store_with_second_try(batches: list[Batch]) -> list[Stored]:
    """A failure that came fast is tried once more: after a restart of the database the first use of a connection fails."""
    started = time.monotonic()
    try:
        return reports_store(batches)
    except (OperationalError, InterfaceError):
        connection.close()
        if time.monotonic() - started > WORTH_A_SECOND_TRY:
            raise
    try:
        return reports_store(batches)
    except (OperationalError, InterfaceError):
        connection.close()
        raise


def _write_refusals() -> None:
    counts = refusals_take()
    if not counts:
        return
    try:
        refusals_write(counts)
    except DatabaseError as error:
        connection.close()
        refusals_give_back(counts)
        logger.warning("counts of refusals wait in memory: %s", error)


COMMITTER = Committer()
