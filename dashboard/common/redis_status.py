"""Broker status: whether Redis works. Each process logs every change once, instead of Celery's
repeated tracebacks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

logger = logging.getLogger(__name__)

BACKOFF_S = 10.0
"""Seconds after a failure during which only probes are sent."""
PROBE_TIMEOUT_S = 1.0
"""Timeout of a probe."""
CELERY_QUEUE = "celery"


class ConnectionClosed(ConnectionError):
    """A task finished after its connection to Redis was closed. Redis redelivers the task after the
    visibility timeout, and the task then finds no work."""


class BrokerStatus:
    """State of Redis as this process knows it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._away_since: float | None = None
        self._failed_at = 0.0
        self._client: object = None
        self.well_since: float | None = None
        self.reason = ""
        """Reason for the last failure."""

    @property
    def is_in_backoff(self) -> bool:
        """True shortly after a failure, while another attempt would only cost time."""
        return self._away_since is not None and time.monotonic() - self._failed_at < BACKOFF_S

    def failed(self, error: object) -> None:
        """Records a failed use of Redis, and logs the first one."""
        reason = str(error).strip().splitlines() or [type(error).__name__]
        with self._guard:
            self._failed_at, self.well_since, self.reason = time.monotonic(), None, reason[0][:200]
            if self._away_since is not None:
                return
            self._away_since = self._failed_at
        logger.warning(
            "Redis at %s is unavailable (%s). Reports are still accepted, processed and "
            "evaluated: workers run the stages on their own timer.",
            broker_address(),
            self.reason,
        )

    def record_success(self) -> None:
        """Records a successful use of Redis, and logs a recovery."""
        with self._guard:
            if self.well_since is None:
                self.well_since = time.monotonic()
            if self._away_since is None:
                return
            seconds, self._away_since = time.monotonic() - self._away_since, None
        logger.warning("Redis at %s is available again, after %.0f s.", broker_address(), seconds)

    def probe(self) -> int | None:
        """Writes to Redis as a task would. Returns the number of queued tasks, or None if Redis
        fails."""
        answers = self._ask(("set", "compilewatch:probe", "1", "ex", 60), ("llen", CELERY_QUEUE))
        return None if answers is None else int(answers[1])

    def claim(self, keys: Mapping[str, float], *, owner: str) -> set[str] | None:
        """Creates each key that does not exist, with its expiry in seconds and this owner. Returns
        the keys of the owner; None if Redis fails."""
        # Two commands for each key: an owner whose answer was lost finds its keys with the second.
        asked: list[tuple[str | int, ...]] = []
        for key, expiry in keys.items():
            asked += [("set", key, owner, "nx", "ex", int(expiry)), ("get", key)]
        answers = self._ask(*asked) if asked else []
        if answers is None:
            return None
        owners = zip(keys, answers[1::2], strict=True)
        return {key for key, answer in owners if answer == owner.encode()}

    def _ask(self, *commands: tuple[str | int, ...]) -> list[Any] | None:
        """The answers to the commands, sent at once; None if Redis fails."""
        from redis import Redis, RedisError  # noqa: PLC0415  # the web process does not load it

        try:
            if self._client is None:
                self._client = Redis.from_url(
                    settings.CELERY_BROKER_URL,
                    socket_timeout=PROBE_TIMEOUT_S,
                    socket_connect_timeout=PROBE_TIMEOUT_S,
                )
            assert isinstance(self._client, Redis)
            pipe: Any = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = pipe.execute()
        except (RedisError, OSError) as error:
            self.failed(error)
            return None
        self.record_success()
        return answers


BROKER = BrokerStatus()


def broker_address() -> str:
    """Host and port of the broker, without the password."""
    parts = urlsplit(settings.CELERY_BROKER_URL)
    return f"{parts.hostname}:{parts.port or 6379}"


class BrokerLogFilter(logging.Filter):
    """Log filter that drops messages of Celery and kombu about a failed broker; `BrokerStatus` logs
    the failure once."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is not about a broker failure."""
        if record.name == "py.warnings":
            # This warning concerns a default of later Celery versions, not the connection.
            return "worker_cancel_long_running_tasks_on_connection_loss" not in record.getMessage()
        if not record.name.startswith(("celery", "kombu")):
            return True
        error = next((error for error in _iter_errors(record) if _is_broker_error(error)), None)
        # A closed connection is no evidence about Redis.
        if error is not None and not isinstance(error, ConnectionClosed):
            BROKER.failed(error)
        return error is None


def _iter_errors(record: logging.LogRecord) -> Iterator[BaseException]:
    found = [record.exc_info[1]] if isinstance(record.exc_info, tuple) else []
    args = record.args if isinstance(record.args, tuple) else ()
    for error in [*found, *args]:
        while isinstance(error, BaseException):
            yield error
            error = error.__cause__ or error.__context__


def _is_broker_error(error: BaseException) -> bool:
    return type(error).__module__.startswith(("redis.", "kombu.exceptions")) or isinstance(
        error, ConnectionError | TimeoutError
    )
