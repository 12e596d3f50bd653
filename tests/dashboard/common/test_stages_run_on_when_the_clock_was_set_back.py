"""A server clock that is temporarily hours ahead stops no periodic job, neither after the
correction nor when those hours arrive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings

from dashboard.common import clock
from dashboard.common.job_slots import (
    CLEANUP_EVERY_CLAIMS,
    MAX_CLOCK_DIFFERENCE_S,
    is_job_overdue,
    slot_claim,
)
from dashboard.pipeline import STAGES, Stage
from dashboard.scheduler import TaskSender, is_overdue

NOON, HOURS = 1_790_000_040.0, 5 * 3600.0
pytestmark = pytest.mark.django_db
FOLD = next(stage for stage in STAGES if stage.name == "fold")


class Time:
    """The wall clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = NOON
        monkeypatch.setattr(clock, "unix", lambda: self.seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def count_folds(sender: TaskSender, sent: list[str], time: Time, seconds: int) -> int:
    """Number of folds that the sender sends in this number of seconds."""
    sent.clear()
    for _ in range(seconds):
        time.seconds += 1
        sender.send_due()
    return sent.count(FOLD.task)


def test_tasks_are_sent_immediately_after_the_clock_is_corrected(
    time: Time, settings: LazySettings, store_reports: Any, make_request: Any
) -> None:
    settings.EMBEDDED = True
    store_reports(make_request(minutes=1))  # a stage without work runs less often
    sent: list[str] = []
    tasks = {
        stage.task: SimpleNamespace(apply_async=lambda task=stage.task, **_: sent.append(task))
        for stage in STAGES
    }
    sender = TaskSender(SimpleNamespace(tasks=tasks))  # type: ignore[arg-type]
    assert count_folds(sender, sent, time, 60) == 60
    time.seconds += HOURS
    assert count_folds(sender, sent, time, 60) == 60
    time.seconds -= HOURS
    assert count_folds(sender, sent, time, 60) == 60


def run_by(time: Time, seconds: int, stage: Stage = FOLD) -> int:
    """The number of the stage's slots that can be claimed in this number of seconds."""
    claimed = 0
    for _ in range(int(seconds // stage.every)):
        claimed += slot_claim(name=stage.name, interval=stage.every) is not None
        time.seconds += stage.every
    return claimed


def test_a_stage_without_a_task_is_overdue_immediately_after_the_clock_is_corrected(
    time: Time,
) -> None:
    run_by(time, 10)
    time.seconds += HOURS
    run_by(time, 10)
    time.seconds -= HOURS
    assert is_overdue(FOLD)
    assert run_by(time, 10) == 10
    assert not is_overdue(FOLD)


@pytest.mark.parametrize("name", ["fold", "retention"])
def test_slots_that_were_claimed_too_early_are_free_when_their_time_comes(
    name: str, time: Time
) -> None:
    stage = next(stage for stage in STAGES if stage.name == name)
    seconds = int(stage.every * (CLEANUP_EVERY_CLAIMS + 10))
    run_by(time, seconds, stage)
    began = time.seconds
    time.seconds += 2 * seconds
    assert run_by(time, seconds, stage) == CLEANUP_EVERY_CLAIMS + 10
    time.seconds = began
    run_by(time, 2 * seconds, stage)
    assert run_by(time, seconds, stage) == CLEANUP_EVERY_CLAIMS + 10


@pytest.mark.parametrize(("name", "ahead"), [("fold", 600), ("judge", 600), ("retention", 1800)])
def test_a_stage_runs_on_when_the_clock_has_been_ahead_for_as_long_as_it_is_set_back(
    name: str, ahead: int, time: Time
) -> None:
    stage = next(stage for stage in STAGES if stage.name == name)
    time.seconds += ahead
    seconds = int(max(ahead, 2 * stage.every))
    run_by(time, seconds, stage)
    time.seconds -= ahead
    lost = int(MAX_CLOCK_DIFFERENCE_S // stage.every) + 1
    assert run_by(time, seconds, stage) >= int(seconds // stage.every) - lost


def test_a_scheduler_with_a_clock_slightly_ahead_keeps_its_slots(time: Time) -> None:
    """The clocks of two machines differ by half a minute, and the machine that is ahead skips every
    other slot: each slot still runs once."""
    ran = []
    for _ in range(20):
        time.seconds += 30
        if int(time.seconds // 30) % 2:
            time.seconds += 30
            ran.append(slot_claim(name="lives", interval=30))
            time.seconds -= 30
        ran.append(slot_claim(name="lives", interval=30))
    claimed = [slot for slot in ran if slot is not None]
    assert len(claimed) == len(set(claimed)) >= 20
    assert not is_job_overdue(name="lives", interval=30, grace=4)
