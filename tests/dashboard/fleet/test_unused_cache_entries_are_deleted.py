"""Cache of senders: an identity is decoded once and kept while the process reports; ended processes
leave no entry."""

from __future__ import annotations

import pytest
from cachetools import TTLCache
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Identity

from dashboard.fleet.fold.decode import (
    MAX_SENDERS,
    SENDER_RETENTION_S,
    ReportSender,
    _clip_label,
    decode_sender,
)


def report_as(number: int) -> ReportSender:
    """A report of another process arrives."""
    identity = Identity(
        f"i-{number}",
        1.0,
        "ranker",
        "1",
        host=f"pod-{number}",
        capabilities={"caches": ("yes", "")},
    )
    return decode_sender(1, identity.id, dumps(identity))


class Time:
    """A clock that the test sets."""

    now = 0.0


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The clock of the sender cache; earlier entries of this process are cleared first."""
    moved = Time()
    decode_sender.cache_clear()
    kept = TTLCache(MAX_SENDERS, SENDER_RETENTION_S, timer=lambda: moved.now)
    monkeypatch.setattr(decode_sender, "cache", kept)
    return moved


def test_a_reporting_process_is_decoded_once(time: Time) -> None:
    first = report_as(0)
    for time.now in range(0, 590, 10):
        assert report_as(0) is first


def test_after_a_long_silence_no_entry_is_left(time: Time) -> None:
    report_as(0)
    time.now = 5000.0
    report_as(1)
    assert len(decode_sender.cache) == 1


def test_short_lived_processes_do_not_accumulate(time: Time) -> None:
    sizes = []
    for minute in range(60):
        time.now = 60.0 * minute
        for number in range(20):
            report_as(20 * minute + number)
        sizes.append(len(decode_sender.cache))
    assert max(sizes) <= 20 * 11


def test_the_number_of_processes_is_limited(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_sender, "cache", TTLCache(100, SENDER_RETENTION_S))
    for number in range(200):
        report_as(number)
        assert len(decode_sender.cache) <= 100


def test_a_name_of_a_single_process_is_cached_nowhere_else() -> None:
    report_as(-1)
    before = _clip_label.cache_info().currsize
    for number in range(1, 100):
        report_as(number)
    assert _clip_label.cache_info().currsize == before
