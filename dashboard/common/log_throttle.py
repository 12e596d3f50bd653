"""What libraries tell by a traceback at each turn is told by a sentence, at most once a minute,
with how often it was so."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable

from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError

THROTTLE_INTERVAL_S = 60.0
MAX_TRACKED_KEYS = 1000
"""Things of which it is known when they were last told; beyond that all of them may be told
again."""
SCHEMA_ERROR_PREFIX = "no such"
"""How SQLite begins what it says of a table or a column that is missing: a fault of ours, and its
traceback stays."""


class LogThrottle:
    """Whether it is time to tell a thing again, and of how many times that tells; any thread may
    ask."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._guard = now, threading.Lock()
        self._told: dict[Hashable, tuple[float, int]] = {}

    def times(self, thing: Hashable) -> int:
        """0 while it was told less than a minute ago, else how often it came since, this time
        counted."""
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
    """On a handler: a task that the database failed, and a request under a name that is not
    ours."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = LogThrottle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; its text may be another one then."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if (
            record.name == "celery.app.trace"
            and isinstance(error, (OperationalError, InterfaceError))
            and SCHEMA_ERROR_PREFIX not in str(error)
        ):
            return self._tell(
                record,
                f"a task was not done, and is done again: the database failed: {_one_line(error)}",
            )
        if record.name == "django.security.DisallowedHost" or isinstance(error, DisallowedHost):
            named = _one_line(error or record.getMessage()).split(". You may need", 1)[0]
            return self._tell(
                record,
                f"a request was refused: {named}; COMPILEWATCH_HOSTS says which names are served",
            )
        return True

    def _tell(self, record: logging.LogRecord, sentence: str) -> bool:
        times = self._seldom.times((record.name, sentence))
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args, record.exc_info, record.exc_text = (
            f"{sentence} ({times} times since it was told)",
            (),
            None,
            None,
        )
        return bool(times)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
