"""Embedded mode: web server and Celery worker threads with their scheduler in one process, on
SQLite, without Redis."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from celery.app.trace import setup_worker_optimizations
from celery.worker import WorkController, state

from dashboard.celery import app as celery_app
from dashboard.ingest.group_commit import COMMITTER
from dashboard.serving.waitress_server import LaneServer

logger = logging.getLogger(__name__)


class EmbeddedServer:
    """Embedded server: starts and stops the two parts together."""

    def __init__(self, *, application: Any, listener: socket.socket) -> None:
        self._server = LaneServer(application, listener)
        setup_worker_optimizations(celery_app)
        self._worker = WorkController(
            app=celery_app,
            pool_cls="threads",
            concurrency=2,
            hostname="embedded",
            without_gossip=True,
            without_mingle=True,
            loglevel="WARNING",
        )
        self._threads = [
            threading.Thread(
                target=self._supervise(self._serve), name="compilewatch-web", daemon=True
            ),
            threading.Thread(
                target=self._supervise(self._worker.start), name="compilewatch-worker", daemon=True
            ),
        ]
        self._stopping = threading.Event()
        self.failed = threading.Event()

    def start(self) -> None:
        """Starts web server and worker, and returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, timeout: float = 2.0) -> None:
        """Stops accepting work, waits up to `timeout` seconds for running work, and closes."""
        self._stopping.set()
        state.should_stop = 0  # type: ignore[assignment]
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        COMMITTER.stop()

    def _serve(self) -> None:
        server = self._server
        while not self._stopping.is_set():
            server.poll_once(0.5)
        server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        server.close()

    def _supervise(self, run: Callable[[], Any]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                with contextlib.suppress(SystemExit):
                    run()
            except Exception:
                logger.exception("a part of the embedded server stopped")
                self.failed.set()

        return guarded
