"""A process logs once that Redis is unavailable and once that it is back, regardless of the number
of failures in Celery."""

from __future__ import annotations

import logging

import pytest
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisAway

from dashboard.common import nudge, redis_status
from dashboard.common.redis_status import BrokerLogFilter, BrokerStatus
from tests.flow.stack import free_port


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, settings: object) -> BrokerStatus:
    """A fresh broker status; no server listens at the address."""
    settings.CELERY_BROKER_URL = f"redis://user:secret@127.0.0.1:{free_port()}/0"  # type: ignore[attr-defined]
    known = BrokerStatus()
    monkeypatch.setattr(redis_status, "BROKER", known)
    monkeypatch.setattr(nudge, "BROKER", known)
    return known


def test_a_change_of_state_is_one_log_line(
    own: BrokerStatus, caplog: pytest.LogCaptureFixture
) -> None:
    assert own.probe() is None
    assert own.probe() is None
    own.failed(RedisAway("again"))
    [away] = caplog.messages
    assert away.startswith("Redis at 127.0.0.1:")
    assert "is unavailable (Error 111 connecting to" in away
    assert "secret" not in away
    own.record_success()
    own.record_success()
    assert [" is available again, after " in message for message in caplog.messages] == [
        False,
        True,
    ]


def test_log_lines_of_celery_become_that_line(
    own: BrokerStatus, caplog: pytest.LogCaptureFixture
) -> None:
    noise = logging.getLogger("celery.worker.consumer.consumer")
    drop = BrokerLogFilter()
    noise.addFilter(drop)
    try:
        try:
            raise OperationalError("gone") from RedisAway("gone")
        except OperationalError as error:
            noise.error("beat: Connection error: %s. Trying again in %s seconds...", error, 2.0)
            noise.exception("Message Error")
        noise.error("Task handler raised error: %r", ValueError("ours"))
    finally:
        noise.removeFilter(drop)
    assert len(caplog.messages) == 2
    assert "is unavailable (gone)" in caplog.messages[0]
    assert "ours" in caplog.messages[1]


def test_no_nudge_is_sent_while_redis_is_unavailable(
    own: BrokerStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def send(task: str, **_: object) -> None:
        tried.append(task)
        raise RedisAway("away")

    monkeypatch.setattr(nudge.current_app, "send_task", send)
    lost = nudge.lost_nudges
    for _ in range(3):
        nudge.nudge("dashboard.regressions.tasks.judge")
    assert tried == ["dashboard.regressions.tasks.judge"]
    assert nudge.lost_nudges == lost + 3
