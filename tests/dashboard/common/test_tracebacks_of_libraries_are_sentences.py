"""A database or disk that fails every task, and requests under unknown host names, write one
sentence a minute instead of tracebacks."""

from __future__ import annotations

import logging
import sys

import pytest
from django.db import OperationalError
from django.test import Client

from dashboard.common.log_throttle import (
    MAX_TRACKED_KEYS,
    THROTTLE_INTERVAL_S,
    LogThrottle,
    TracebackSummaryFilter,
)


def record(error: Exception, name: str = "celery.app.trace") -> logging.LogRecord:
    try:
        raise error
    except type(error):
        return logging.LogRecord(
            name,
            logging.ERROR,
            __file__,
            1,
            "Task %(name)s raised",
            ({"name": "fold"},),
            sys.exc_info(),
        )


def test_a_database_failure_is_one_line_and_repeated_failures_are_counted() -> None:
    sentences = TracebackSummaryFilter()
    first, second = (
        record(OperationalError("database or disk is full\nmore")),
        record(OperationalError("database or disk is full\nmore")),
    )
    assert sentences.filter(first) and not sentences.filter(second)
    assert first.getMessage() == (
        "a task failed and will be retried, because the database failed: database or disk is "
        "full more (1 times since the last such line)"
    )
    assert (first.exc_info, first.levelname) == (None, "WARNING")


@pytest.mark.parametrize(
    "error", [ValueError("an error of the application"), OperationalError("no such column: speed")]
)
def test_an_error_of_the_application_keeps_its_traceback(error: Exception) -> None:
    sentences = TracebackSummaryFilter()
    for _ in range(2):
        kept = record(error)
        assert sentences.filter(kept) and kept.exc_info


def test_suppressed_lines_are_counted_in_the_next_line_after_a_minute() -> None:
    now = [100.0]
    seldom = LogThrottle(lambda: now[0])
    assert [seldom.times("this") for _ in range(5)] == [1, 0, 0, 0, 0] and seldom.times("that") == 1
    now[0] += THROTTLE_INTERVAL_S
    assert seldom.times("this") == 5


def test_the_throttle_remembers_a_limited_number_of_keys() -> None:
    seldom = LogThrottle()
    for thing in range(3 * MAX_TRACKED_KEYS):
        seldom.times(thing)
    assert len(seldom._told) <= MAX_TRACKED_KEYS + 1


def test_an_unknown_host_name_is_a_sentence_with_the_projects_own_setting(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/healthz/nowhere", headers={"host": "evil.example"}).status_code == 400
    [told] = [one for one in caplog.records if "evil.example" in one.getMessage()]
    assert (
        "COMPILEWATCH_HOSTS" in told.getMessage()
        and "ALLOWED_HOSTS" not in told.getMessage()
        and told.exc_info is None
    )
