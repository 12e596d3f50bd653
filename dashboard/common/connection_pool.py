"""Connection pool of a web process: few shared connections to PostgreSQL, and no wait without
end."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.conf import settings

LOCK_TIMEOUT_S, STATEMENT_TIMEOUT_S, SERVER_SILENCE_TIMEOUT_S = 2, 10, 12.0
"""Seconds until PostgreSQL aborts a wait for a lock, aborts a statement, and until this process
gives up on a silent server."""

POLL_INTERVAL_S = 0.1


class DeadlineConnection(psycopg.Connection[Any]):
    """Connection that closes when the server stops answering: its process may be halted or its
    machine gone."""

    def wait(
        self, gen: Any, interval: float = POLL_INTERVAL_S, timeout: float | None = None
    ) -> Any:
        """Waits for the server, up to the timeout; psycopg calls this for every wait."""
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
"""A thread that gets no connection within the timeout answers 503. The number of blocked threads
thus stays at the number of connections. A pool that gives up early asks again with the next
request, so it recovers together with the database."""


def configure_connection_pool(database: dict[str, Any]) -> None:
    """Adds the pool to the settings of the database.

    Workers have no pool: they wait for locks, and fork, which a pool does not survive.
    """
    if database["ENGINE"].endswith("postgresql") and not settings.EMBEDDED:
        database["CONN_MAX_AGE"] = 0
        limits = f"-c lock_timeout={LOCK_TIMEOUT_S}s -c statement_timeout={STATEMENT_TIMEOUT_S}s"
        database["OPTIONS"] |= {"pool": POOL_OPTIONS, "options": limits}
