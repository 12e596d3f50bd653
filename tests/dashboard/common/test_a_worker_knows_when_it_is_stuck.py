"""A worker ends its process only if work waits and it has done none for a minute; a stage that no
process sweeps is overdue."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from dashboard import scheduler
from dashboard.common import clock
from dashboard.common.heartbeat import record_fold
from dashboard.common.job_slots import slot_claim
from dashboard.pipeline import STAGES
from dashboard.scheduler import Sweeper, Watchdog, is_overdue


class Time:
    """A clock that only the test moves, in seconds."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time_is(monkeypatch: pytest.MonkeyPatch) -> Time:
    moved = Time()
    monkeypatch.setattr(scheduler, "time", moved)
    return moved


def stuck_reason(dog: Watchdog, **facts: Any) -> str:
    return dog.find_stuck_reason(
        **{"waiting": 3, "working": False, "oldest": 0.0, "folded": 5.0, **facts}
    )


def test_waiting_tasks_without_progress_are_a_reason(time_is: Time) -> None:
    dog = Watchdog()
    assert stuck_reason(dog) == ""
    time_is.now += 59
    assert stuck_reason(dog) == ""
    time_is.now += 2
    assert (
        stuck_reason(dog) == "3 tasks are queued in Redis, and this worker has taken none for 60 s"
    )
    dog.received()
    assert stuck_reason(dog) == ""


@pytest.mark.parametrize("facts", [{"waiting": 0}, {"waiting": None}, {"working": True}])
def test_an_empty_queue_an_absent_redis_or_a_running_task_is_no_reason(
    time_is: Time, facts: dict[str, Any]
) -> None:
    dog = Watchdog()
    time_is.now += 500
    assert stuck_reason(dog, **facts) == ""
    time_is.now += 59
    assert stuck_reason(dog) == ""


def test_waiting_reports_without_a_fold_are_a_reason(time_is: Time) -> None:
    dog = Watchdog()
    assert stuck_reason(dog, oldest=61.0, folded=59.0) == ""
    assert stuck_reason(dog, oldest=59.0, folded=500.0) == ""
    assert (
        stuck_reason(dog, oldest=75.0, folded=61.0)
        == "the oldest report has waited for 75 s, and this worker has folded nothing for 61 s"
    )


@pytest.mark.django_db
def test_a_stage_without_a_claim_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 1.8e9
    for stage in STAGES:
        monkeypatch.setattr(clock, "unix", lambda: begun)
        assert is_overdue(stage)
        slot_claim(name=stage.name, interval=stage.every)
        assert not is_overdue(stage)
        monkeypatch.setattr(clock, "unix", lambda every=stage.every: begun + every + 1)
        assert not is_overdue(stage)
        monkeypatch.setattr(clock, "unix", lambda every=stage.every: begun + 3 * every + 61)
        assert is_overdue(stage)


class Request:
    """A running task, as the consumer represents it."""

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        self.name, self.time_start = name, time.time() - seconds


def swept(monkeypatch: pytest.MonkeyPatch, under_way: Request, *, away: bool) -> list[str]:
    monkeypatch.setattr(scheduler.state, "active_requests", WeakSet([under_way]))
    found: list[str] = []
    tasks = {
        stage.task: SimpleNamespace(run=lambda name=stage.task, **_: found.append(name))
        for stage in STAGES
    }
    Sweeper(SimpleNamespace(tasks=tasks))._sweep(away=away)  # type: ignore[arg-type]
    return found


FOLD = "dashboard.fleet.tasks.fold"
OTHERS = [stage.task for stage in STAGES if stage.task != FOLD]


def test_a_running_stage_is_not_swept_concurrently(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(monkeypatch, Request(FOLD, 200.0), away=False) == OTHERS
    assert swept(monkeypatch, Request(FOLD, 2.0), away=True) == OTHERS


def test_a_task_from_before_the_redis_outage_does_not_block_its_stage(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(monkeypatch, Request(FOLD, 5.0), away=True) == [stage.task for stage in STAGES]


def test_a_clock_that_is_set_forward_ends_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report waits when the clock jumps: by the wall clock, the report has waited for hours and
    the last fold was hours ago."""
    timer = Sweeper(SimpleNamespace(tasks={}))  # type: ignore[arg-type]
    timer._began -= 3600
    record_fold()
    assert 0 <= time.monotonic() - scheduler.last_fold_at() < 60
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 5 * 3600)
    monkeypatch.setattr(scheduler, "read_inbox_age", lambda: 5 * 3600.0)
    timer._watch(0)
    assert not timer._stopping.is_set()
    monkeypatch.setattr(scheduler, "last_fold_at", lambda: time.monotonic() - 61)
    monkeypatch.setattr(scheduler.state, "should_stop", None)
    monkeypatch.setattr(
        scheduler,
        "threading",
        SimpleNamespace(Timer=lambda *_: SimpleNamespace(start=bool)),
    )
    timer._watch(0)
    assert timer._stopping.is_set()
