"""What a web process may take of PostgreSQL: few connections that its threads share, and no wait
without an end."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.conf import settings

LOCK_TIMEOUT_S, STATEMENT_TIMEOUT_S, SERVER_SILENCE_TIMEOUT_S = 2, 10, 12.0
"""Seconds: PostgreSQL gives up waiting for a lock, then a statement; a server that says nothing at
all is given up by us."""

POLL_INTERVAL_S = 0.1


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server stops answering: its process may be halted or its
    machine gone."""

    def wait(
        self, gen: Any, interval: float = POLL_INTERVAL_S, timeout: float | None = None
    ) -> Any:
        """Called by psycopg whenever it waits for the server."""
        begun = time.monotonic()
        try:
            return super().wait(
                gen, interval, SERVER_SILENCE_TIMEOUT_S if timeout is None else timeout
            )
        except psycopg.OperationalError:
            if time.monotonic() - begun >= SERVER_SILENCE_TIMEOUT_S:
                self.pgconn.finish()
            raise


POOL_OPTIONS = {
    "min_size": 0,
    "max_size": 8,
    "timeout": 2.0,
    "reconnect_timeout": 2.0,
    "max_idle": 60.0,
    "connection_class": DeadlineConnection,
}
"""A thread that finds none within the timeout answers 503, and so no more threads than connections
are ever held up. A pool that gives up early asks again with the next request: it is back as soon as
the database is."""


def configure_connection_pool(database: dict[str, Any]) -> None:
    """Changes the settings of the database; workers keep theirs: they wait for locks, and fork,
    which a pool does not survive."""
    if database["ENGINE"].endswith("postgresql") and not settings.EMBEDDED:
        database["CONN_MAX_AGE"] = 0
        limits = f"-c lock_timeout={LOCK_TIMEOUT_S}s -c statement_timeout={STATEMENT_TIMEOUT_S}s"
        database["OPTIONS"] |= {"pool": POOL_OPTIONS, "options": limits}
