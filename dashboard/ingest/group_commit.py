"""Group commit: one thread per process stores the batches of all waiting requests in one commit.

Request threads queue a batch and wait. While one commit runs, the next group gathers. A batch that
cannot be stored is retried alone, so that it cannot fail the other batches of its group. The batch
of a request is durable before its request returns.

Algorithm: group commit (DeWitt et al., Implementation techniques for main memory database systems,
1984).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
)

from dashboard.ingest.admission import ADMISSION
from dashboard.ingest.batch import Batch, StoreResult
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.intake_counters import drain_intake, record_commit, restore_intake
from dashboard.ingest.refusal_counters import drain_refusals, restore_refusals
from dashboard.ingest.services import intake_write, refusals_write, reports_append, reports_store

logger = logging.getLogger(__name__)

MAX_GROUP_REPORTS = 64
GATHER_DELAY_S = 0.002
"""Seconds that a commit waits for other requests in progress. It costs the database a third less
than many small commits."""

COMMIT_TIMEOUT_S = 3.0
COUNTS_INTERVAL_S = 2.0
RETRY_WITHIN_S = 1.0
ERROR_PAUSE_S = 0.1
"""Seconds that the thread pauses after an error of its own, so that an immediate, repeated error
does not fill the log."""
MAX_FAILURES_IN_A_ROW = 3
"""Errors in a row after which a process accepts no reports."""

_STOP = None
S = TypeVar("S")


class PendingBatch:
    """A batch and its request thread. The thread waits for the commit on a lock, which costs a
    tenth of a Future."""

    __slots__ = ("_error", "_gate", "_stored", "batch", "given_up")

    def __init__(self, batch: Batch) -> None:
        self.batch, self.given_up = batch, False
        self._stored: StoreResult | None = None
        self._error: BaseException | None = None
        self._gate = Lock()
        self._gate.acquire()

    @property
    def answered(self) -> bool:
        """True if the request has its result."""
        return self._stored is not None or self._error is not None

    def result(self, timeout: float) -> StoreResult:
        """The result of the batch. Raises the error of the commit, or RefusalError (busy) after
        `timeout` seconds."""
        if not self._gate.acquire(timeout=timeout):
            self.given_up = True
            raise RefusalError(
                "busy",
                "The database is too slow at present; send the reports again.",
                retry_after=5,
            )
        if self._stored is None:
            assert self._error is not None
            raise self._error
        return self._stored

    def done(self, stored: StoreResult) -> None:
        """Releases the request: the batch is durable."""
        self._stored = stored
        self._gate.release()

    def failed(self, error: BaseException) -> None:
        """Releases the request: the batch is not stored."""
        self._error = error
        self._gate.release()


class Committer:
    """Accepts batches from any thread. The first batch starts the committer's thread, in the
    process that needs it."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[PendingBatch | None] = SimpleQueue()
        self._starting = Lock()
        self._thread: Thread | None = None
        self._counts_due = 0.0
        self.failures_in_a_row = 0
        """Errors of the thread, not of the database, since its last commit. The readiness check
        reads the count."""
        os.register_at_fork(after_in_child=self._reset_after_fork)

    def store(self, batch: Batch) -> StoreResult:
        """The result of the batch once it is durable. Raises RefusalError (busy) after too long a
        wait."""
        self.start()
        waiting = PendingBatch(batch)
        self._queue.put(waiting)
        return waiting.result(COMMIT_TIMEOUT_S)

    def start(self) -> None:
        """Ensures that the thread runs. A thread that ended with an error is replaced, and the
        waiting queue is committed."""
        if self._thread is None or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = Thread(
                        target=self._run, name="compilewatch-committer", daemon=True
                    )
                    self._thread.start()

    def stop(self) -> None:
        """Commits the queue, writes the counts, and ends the thread. The next batch starts another
        thread."""
        thread = self._thread
        if thread is not None:
            self._queue.put(_STOP)
            thread.join(timeout=COMMIT_TIMEOUT_S)
            self._thread = None

    def _reset_after_fork(self) -> None:
        self._queue, self._starting, self._thread = SimpleQueue(), Lock(), None

    def _run(self) -> None:
        going = True
        while going:
            group: list[PendingBatch] = []
            try:
                going = self._gather(group)
                self._commit(group)
                if not going or time.monotonic() >= self._counts_due:
                    self._counts_due = time.monotonic() + COUNTS_INTERVAL_S
                    _write_refusals()
                    _write_intake()
            except BaseException as error:  # noqa: BLE001 - reports that follow must be committed
                self._recover(group, error)
        connection.close()

    def _commit(self, group: list[PendingBatch]) -> None:
        if not group:
            return
        ADMISSION.on_commit_start()
        try:
            begun = time.perf_counter()
            commit_group(group)
            record_commit(time.perf_counter() - begun)
            self.failures_in_a_row = 0
        finally:
            ADMISSION.on_commit_end()

    def _recover(self, group: list[PendingBatch], error: BaseException) -> None:
        """Answers the waiting requests with an error, so that their agents resend, and opens
        another connection."""
        self.failures_in_a_row += 1
        logger.error(
            "the committer failed and continues (%d in a row): %s",
            self.failures_in_a_row,
            error,
            exc_info=error,
        )
        for waiting in group:
            if not waiting.answered:
                waiting.failed(
                    RefusalError(
                        "busy",
                        "The server failed while it stored the reports; send them again.",
                        retry_after=5,
                    )
                )
        try:
            connection.close()
        except Exception as closing:  # noqa: BLE001 - the connection is replaced in any case
            logger.warning("the committer could not close its connection: %s", closing)
        time.sleep(ERROR_PAUSE_S)

    def _gather(self, group: list[PendingBatch]) -> bool:
        """Adds the waiting batches to the group, up to 64 reports. Returns False if the thread must
        end. While one commit runs, the next group gathers."""
        reports = 0
        try:
            waiting = self._queue.get(timeout=COUNTS_INTERVAL_S)
            if ADMISSION.under_way > 1:
                time.sleep(GATHER_DELAY_S)
            while waiting is not _STOP:
                if not waiting.given_up:
                    group.append(waiting)
                    reports += max(1, len(waiting.batch.items))
                if reports >= MAX_GROUP_REPORTS:
                    return True
                waiting = self._queue.get_nowait()
            return False
        except Empty:
            return True


def commit_group(group: list[PendingBatch]) -> None:
    """Makes the batches durable and releases their requests. A batch that does not simply continue
    its sender's range is stored separately."""
    try:
        appended = _store_with_retry(reports_append, [waiting.batch for waiting in group])
    except BaseException as error:  # noqa: BLE001 - the request threads raise it
        _fail(group, error)
        return
    rest = []
    for waiting, stored in zip(group, appended, strict=True):
        if stored is None:
            rest.append(waiting)
        else:
            waiting.done(stored)
    if not rest:
        return
    try:
        found = _store_with_retry(reports_store, [waiting.batch for waiting in rest])
    except BaseException as error:  # noqa: BLE001 - the same
        _fail(rest, error)
        return
    for waiting, stored in zip(rest, found, strict=True):
        waiting.done(stored)


def _store_with_retry(store: Callable[[list[Batch]], list[S]], batches: list[Batch]) -> list[S]:
    """Retries a fast failure once: after a restart of the database, the first use of a connection
    fails."""
    started = time.monotonic()
    try:
        return store(batches)
    except (OperationalError, InterfaceError):
        connection.close()
        if time.monotonic() - started > RETRY_WITHIN_S:
            raise
    try:
        return store(batches)
    except (OperationalError, InterfaceError):
        connection.close()
        raise


def _fail(group: list[PendingBatch], error: BaseException) -> None:
    if len(group) > 1 and isinstance(error, (DataError, IntegrityError)):
        for waiting in group:  # one of them cannot be stored; it must not fail the others
            commit_group([waiting])
        return
    for waiting in group:
        waiting.failed(error)


def _write_refusals() -> None:
    counts = drain_refusals()
    if not counts:
        return
    try:
        refusals_write(counts)
    except DatabaseError as error:
        connection.close()
        restore_refusals(counts)
        logger.warning("counts of refusals remain in memory: %s", error)


def _write_intake() -> None:
    taken = drain_intake()
    if not (taken.commits or taken.reports):
        return
    try:
        intake_write(taken)
    except DatabaseError as error:
        connection.close()
        restore_intake(taken)
        logger.warning("counts of accepted reports remain in memory: %s", error)


COMMITTER = Committer()
