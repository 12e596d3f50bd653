"""In a soak, too, a worker's first process runs a stage only if no task of it is sent. The process
used to run each stage a second time, and grew."""

from __future__ import annotations

import math

import pytest

from dashboard import scheduler
from dashboard.common import clock
from dashboard.common.job_slots import slot_claim
from dashboard.pipeline import STAGES
from tests.bench import soak_clock, soak_pace

DAY, PACE, SECONDS = 25.0, 10.0, 100
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grace as the settings of a soak set it in a worker."""
    monkeypatch.setattr(scheduler, "GRACE_BOUNDS_S", scheduler.GRACE_BOUNDS_S)
    monkeypatch.setattr(scheduler, "current_slot", scheduler.current_slot)
    monkeypatch.setenv(soak_clock.VARIABLE, soak_clock.written(base=1.8e9, pace=PACE, day=DAY))
    soak_pace.set_intervals()


def swept(monkeypatch: pytest.MonkeyPatch, sent_every: dict[str, float]) -> set[str]:
    """Names of the stages that a worker sweeps in four days; `sent_every` gives the interval of
    the tasks per stage, in real seconds."""
    real, found = 1.8e9, set()
    monkeypatch.setattr(soak_clock, "_REAL", lambda: real)
    monkeypatch.setattr(
        clock, "unix", soak_clock.clock(soak_clock.written(base=real, pace=PACE, day=DAY))
    )
    for second in range(SECONDS):
        for stage in STAGES:
            if second % sent_every[stage.name] < 1:
                slot_claim(name=stage.name, interval=stage.every)
            elif scheduler.is_overdue(stage):
                found.add(stage.name)
        real += 1
    return found


def sent() -> dict[str, float]:
    return {stage.name: min(stage.every, DAY) for stage in STAGES}


def test_a_worker_sweeps_no_stage_whose_task_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert swept(monkeypatch, sent()) == set()


def test_a_worker_sweeps_a_stage_whose_task_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert swept(monkeypatch, sent() | {"judge": math.inf, "learn": math.inf}) == {"judge", "learn"}
