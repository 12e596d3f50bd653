"""What a web process may take of PostgreSQL: few connections that its threads share, and no wait without an end."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.conf import settings

LOCK_PATIENCE, STATEMENT_PATIENCE, SILENCE = 2, 10, 12.0
"""Seconds: PostgreSQL gives up waiting for a lock, then a statement; a server that says nothing at all is given up by us."""

LOOKS_EVERY = 0.1


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server stops answering: its process may be halted or its machine gone."""

    def wait(self, gen: Any, interval: float = LOOKS_EVERY, timeout: float | None = None) -> Any:
        """Called by psycopg whenever it waits for the server."""
        begun = time.monotonic()
        try:
            return super().wait(gen, interval, SILENCE if timeout is None else timeout)
        except psycopg.OperationalError:
            if time.monotonic() - begun >= SILENCE:
                self.pgconn.finish()
            raise


POOL = {
    "min_size": 0,
    "max_size": 8,
    "timeout": 2.0,
    "reconnect_timeout": 2.0,
    "max_idle": 60.0,
    "connection_class": PatientConnection,
}
"""A thread that finds none within the timeout answers 503, and so no more threads than connections are ever held up. A pool that gives
up early asks again with the next request: it is back as soon as the database is."""


def connections_bound(database: dict[str, Any]) -> None:
    """Changes the settings of the database; workers keep theirs: they wait for locks, and fork, which a pool does not survive."""
    if database["ENGINE"].endswith("postgresql") and not settings.EMBEDDED:
        database["CONN_MAX_AGE"] = 0
        limits = f"-c lock_timeout={LOCK_PATIENCE}s -c statement_timeout={STATEMENT_PATIENCE}s"
        database["OPTIONS"] |= {"pool": POOL, "options": limits}
