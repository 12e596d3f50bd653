"""Who reports is worked out once and kept while it reports; processes that went leave nothing
behind."""

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


def comes(number: int) -> ReportSender:
    """A process of its own reports."""
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
    """A clock that is set by hand."""

    now = 0.0


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The clock of the senders that are kept; the others of this process are forgotten first."""
    moved = Time()
    decode_sender.cache_clear()
    kept = TTLCache(MAX_SENDERS, SENDER_RETENTION_S, timer=lambda: moved.now)
    monkeypatch.setattr(decode_sender, "cache", kept)
    return moved


def test_a_process_that_reports_is_worked_out_once(time: Time) -> None:
    first = comes(0)
    for time.now in range(0, 590, 10):
        assert comes(0) is first


def test_after_a_long_silence_nothing_is_left(time: Time) -> None:
    comes(0)
    time.now = 5000.0
    comes(1)
    assert len(decode_sender.cache) == 1


def test_processes_that_come_and_go_do_not_add_up(time: Time) -> None:
    sizes = []
    for minute in range(60):
        time.now = 60.0 * minute
        for number in range(20):
            comes(20 * minute + number)
        sizes.append(len(decode_sender.cache))
    assert max(sizes) <= 20 * 11


def test_there_is_a_limit_of_processes(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_sender, "cache", TTLCache(100, SENDER_RETENTION_S))
    for number in range(200):
        comes(number)
        assert len(decode_sender.cache) <= 100


def test_what_one_process_alone_says_of_itself_is_kept_by_nothing_else() -> None:
    comes(-1)
    before = _clip_label.cache_info().currsize
    for number in range(1, 100):
        comes(number)
    assert _clip_label.cache_info().currsize == before
