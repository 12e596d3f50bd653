"""Log throttle: replaces repeated tracebacks of libraries with one sentence a minute and a
count."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable

from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError

THROTTLE_INTERVAL_S = 60.0
MAX_TRACKED_KEYS = 1000
"""Maximum number of log keys remembered before the table is reset."""
SCHEMA_ERROR_PREFIX = "no such"
"""Start of SQLite's message for a missing table or column. That is a bug of the dashboard, so its
traceback stays."""


class LogThrottle:
    """Decides whether to log a repeated event, and how many times it has occurred. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._guard = now, threading.Lock()
        self._told: dict[Hashable, tuple[float, int]] = {}

    def times(self, thing: Hashable) -> int:
        """Returns 0 if the event was logged less than a minute ago, else the number of occurrences
        since, including this one."""
        with self._guard:
            if len(self._told) > MAX_TRACKED_KEYS:
                self._told.clear()
            told_at, silent = self._told.get(thing, (float("-inf"), 0))
            if self._now() - told_at < THROTTLE_INTERVAL_S:
                self._told[thing] = told_at, silent + 1
                return 0
            self._told[thing] = self._now(), 0
            return silent + 1


class TracebackSummaryFilter(logging.Filter):
    """Log filter that shortens two events: a task that the database failed, and a request with an
    unknown host name."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = LogThrottle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether to write the record, and may replace its text."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if (
            record.name == "celery.app.trace"
            and isinstance(error, (OperationalError, InterfaceError))
            and SCHEMA_ERROR_PREFIX not in str(error)
        ):
            return self._tell(
                record,
                "a task failed and will be retried, because the database failed: "
                f"{_one_line(error)}",
            )
        if record.name == "django.security.DisallowedHost" or isinstance(error, DisallowedHost):
            named = _one_line(error or record.getMessage()).split(". You may need", 1)[0]
            return self._tell(
                record,
                f"a request was refused: {named}; COMPILEWATCH_HOSTS lists the served host names",
            )
        return True

    def _tell(self, record: logging.LogRecord, sentence: str) -> bool:
        times = self._seldom.times((record.name, sentence))
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args, record.exc_info, record.exc_text = (
            f"{sentence} ({times} times since the last such line)",
            (),
            None,
            None,
        )
        return bool(times)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
