"""A database or a disk that fails every task, and strangers who ask under any name, write a
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


def test_a_task_that_the_database_failed_is_one_line_and_the_next_ones_are_counted() -> None:
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
    "error", [ValueError("a fault of ours"), OperationalError("no such column: speed")]
)
def test_a_fault_of_ours_keeps_its_traceback(error: Exception) -> None:
    sentences = TracebackSummaryFilter()
    for _ in range(2):
        kept = record(error)
        assert sentences.filter(kept) and kept.exc_info


def test_what_came_meanwhile_is_told_after_a_minute() -> None:
    now = [100.0]
    seldom = LogThrottle(lambda: now[0])
    assert [seldom.times("this") for _ in range(5)] == [1, 0, 0, 0, 0] and seldom.times("that") == 1
    now[0] += THROTTLE_INTERVAL_S
    assert seldom.times("this") == 5


def test_it_remembers_no_more_than_so_many_things() -> None:
    seldom = LogThrottle()
    for thing in range(3 * MAX_TRACKED_KEYS):
        seldom.times(thing)
    assert len(seldom._told) <= MAX_TRACKED_KEYS + 1


def test_a_name_that_is_not_ours_is_a_sentence_with_our_own_setting(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/healthz/nowhere", headers={"host": "evil.example"}).status_code == 400
    [told] = [one for one in caplog.records if "evil.example" in one.getMessage()]
    assert (
        "COMPILEWATCH_HOSTS" in told.getMessage()
        and "ALLOWED_HOSTS" not in told.getMessage()
        and told.exc_info is None
    )
