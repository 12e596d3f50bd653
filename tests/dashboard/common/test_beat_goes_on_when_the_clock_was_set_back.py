"""A server clock that is temporarily hours ahead stops no periodic job, neither after the
correction nor when those hours arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from celery.utils.imports import instantiate

from dashboard.celery import app
from dashboard.common import clock
from dashboard.common.job_slots import CLEANUP_EVERY_CLAIMS, is_job_overdue, slot_claim
from dashboard.fallback_scheduler import is_overdue
from dashboard.pipeline import STAGES, Stage

NOON, HOURS = 1_790_000_040.0, 5 * 3600.0
pytestmark = pytest.mark.django_db
FOLD = next(stage for stage in STAGES if stage.name == "fold")


class Time:
    """The wall clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = NOON
        monkeypatch.setattr(clock, "unix", lambda: self.seconds)
        monkeypatch.setattr(app, "now", lambda: datetime.fromtimestamp(self.seconds, UTC))


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def sent(beat: Any, time: Time, seconds: float) -> list[str]:
    """Names of the tasks that beat sends in this number of seconds; beat chooses its sleeps."""
    found: list[str] = []
    beat.apply_entry = lambda entry, producer=None: found.append(entry.name)
    until = time.seconds + seconds
    while time.seconds < until:
        time.seconds += max(0.005, beat.tick())
    return found


def beat_made(time: Time) -> Any:
    """Beat as both modes start it."""
    beat = instantiate(app.conf.beat_scheduler, app=app, lazy=True, max_interval=1)
    beat.setup_schedule()
    for entry in beat.schedule.values():
        entry.schedule.nowfun = lambda: datetime.fromtimestamp(time.seconds, UTC)
        entry.last_run_at = entry.default_now()
    return beat


def test_beat_sends_tasks_immediately_after_the_clock_is_corrected(time: Time) -> None:
    beat = beat_made(time)
    assert sent(beat, time, 60).count("fold") >= 58
    time.seconds += HOURS
    assert sent(beat, time, 60).count("fold") >= 58
    time.seconds -= HOURS
    assert sent(beat, time, 60).count("fold") >= 58


def run_by(time: Time, seconds: int, stage: Stage = FOLD) -> int:
    """The number of the stage's slots that can be claimed in this number of seconds."""
    claimed = 0
    for _ in range(int(seconds // stage.every)):
        claimed += slot_claim(name=stage.name, interval=stage.every) is not None
        time.seconds += stage.every
    return claimed


def test_a_stage_without_beat_is_overdue_immediately_after_the_clock_is_corrected(
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


def test_a_beat_with_a_clock_slightly_ahead_keeps_its_slots(time: Time) -> None:
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
