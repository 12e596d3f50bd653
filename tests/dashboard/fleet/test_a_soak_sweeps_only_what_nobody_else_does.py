"""In a soak, too, a worker's first process runs a stage only if beat does not send it. The process
used to run each stage a second time, and grew."""

from __future__ import annotations

import math

import pytest

from dashboard import fallback_scheduler
from dashboard.common import clock
from dashboard.common.job_slots import slot_claim
from dashboard.pipeline import STAGES
from tests.bench import soak_clock, soak_pace

DAY, PACE, SECONDS = 25.0, 10.0, 100
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grace as the settings of a soak set it in a worker."""
    monkeypatch.setattr(fallback_scheduler, "GRACE_BOUNDS_S", fallback_scheduler.GRACE_BOUNDS_S)
    soak_pace.patient()


def swept(monkeypatch: pytest.MonkeyPatch, sent_every: dict[str, float]) -> set[str]:
    """Names of the stages that a worker runs by its own timer in four days; `sent_every` gives
    beat's interval per stage, in real seconds."""
    real, found = 1.8e9, set()
    monkeypatch.setattr(soak_clock, "_REAL", lambda: real)
    monkeypatch.setattr(
        clock, "unix", soak_clock.clock(soak_clock.written(base=real, pace=PACE, day=DAY))
    )
    for second in range(SECONDS):
        for stage in STAGES:
            if second % sent_every[stage.name] < 1:
                slot_claim(name=stage.name, interval=stage.every)
            elif fallback_scheduler.is_overdue(stage):
                found.add(stage.name)
        real += 1
    return found


def sent() -> dict[str, float]:
    return {name: entry["schedule"].seconds for name, entry in soak_pace.schedule(DAY).items()}


def test_a_worker_runs_no_stage_that_beat_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert swept(monkeypatch, sent()) == set()


def test_a_worker_runs_a_stage_that_beat_does_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    assert swept(monkeypatch, sent() | {"judge": math.inf, "learn": math.inf}) == {"judge", "learn"}
