"""Beat stays in step with the slots that its tasks claim: each slot gets one task, whenever beat
started and however late it wakes."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from dashboard.common.aligned_schedule import AlignedSchedule
from dashboard.pipeline import BEAT_SCHEDULE, STAGES

NOON = 1_790_000_040.0


@pytest.mark.parametrize("interval", [1, 2, 5, 30])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.98, 0.999])
def test_each_slot_gets_one_task(interval: float, phase: float) -> None:
    chance, now = random.Random(f"{interval} {phase}"), NOON + phase * interval
    schedule = AlignedSchedule(interval, nowfun=lambda: datetime.fromtimestamp(now, UTC))
    last_sent, slots = now, []
    while now < NOON + 40 * interval:
        due, wait = schedule.is_due(datetime.fromtimestamp(last_sent, UTC))
        assert 0 < wait <= interval
        if due:
            last_sent = now
            slots.append(int(now // interval))
        now += wait + chance.uniform(-0.01, 0.02)  # celery wakes slightly early or late
    assert slots == list(range(slots[0], slots[0] + len(slots)))
    assert len(slots) >= 38


def test_every_stage_is_sent_in_step_with_its_slots() -> None:
    assert {name: entry["schedule"] for name, entry in BEAT_SCHEDULE.items()} == {
        stage.name: AlignedSchedule(stage.every) for stage in STAGES
    }
