"""However many beats there are, each run of a periodic job is claimed by one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from dashboard.common import clock
from dashboard.common.jobs import slot_claim, slot_finish
from dashboard.common.models import JobSlot


@pytest.mark.django_db(transaction=True)
def test_of_many_threads_one_claims_each_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "unix", lambda: 1.8e9)

    def claim(_: int) -> int | None:
        try:
            return slot_claim(name="judge", interval=5)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        claimed = [slot for slot in pool.map(claim, range(24)) if slot is not None]
    assert claimed == [360_000_000]
    assert slot_claim(name="fold", interval=5) == 360_000_000
    monkeypatch.setattr(clock, "unix", lambda: 1.8e9 + 5)
    assert slot_claim(name="judge", interval=5) == 360_000_001


@pytest.mark.django_db
def test_finished_slots_of_the_day_before_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in (1.8e9, 1.8e9 + 2 * 86400):
        monkeypatch.setattr(clock, "unix", lambda moment=moment: moment)
        slot = slot_claim(name="judge", interval=60)
        assert slot is not None
        slot_finish(name="judge", slot=slot)
    [left] = JobSlot.objects.all()
    assert left.finished_at == clock.now()
