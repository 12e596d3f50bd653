"""With any number of schedulers, each run of a periodic job is claimed once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from dashboard.common import clock
from dashboard.common.job_slots import CLEANUP_EVERY_CLAIMS, job_run, slot_claim, slot_finish
from dashboard.common.models import JobSlot
from dashboard.fleet.tasks import deployments, partitions


@pytest.mark.django_db(transaction=True)
def test_one_of_many_threads_claims_each_slot(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_finished_slots_of_the_day_before_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in (1.8e9, 1.8e9 + 2 * 86400):
        monkeypatch.setattr(clock, "unix", lambda moment=moment: moment)
        slot = slot_claim(name="judge", interval=60)
        assert slot is not None
        slot_finish(name="judge", slot=slot)
    [left] = JobSlot.objects.all()
    assert left.finished_at == clock.now()


@pytest.mark.django_db
def test_slots_of_a_job_that_skips_most_slots_are_deleted_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for turn in range(3 * CLEANUP_EVERY_CLAIMS):
        monkeypatch.setattr(clock, "unix", lambda turn=turn: 1.8e9 + 5 + turn * 10 * 5)
        assert slot_claim(name="judge", interval=5) is not None
    assert (
        72 <= JobSlot.objects.count() <= 72 + CLEANUP_EVERY_CLAIMS
    )  # the slots of an hour, and those since the last cleanup


@pytest.mark.django_db
def test_a_job_runs_once_per_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[float] = []
    for moment in (1.8e9, 1.8e9 + 1, 1.8e9 + 10):
        monkeypatch.setattr(clock, "unix", lambda moment=moment: moment)
        job_run(name="deployments", interval=10, job=lambda moment=moment: runs.append(moment))
    assert runs == [1.8e9, 1.8e9 + 10]


@pytest.mark.django_db
def test_the_periodic_tasks_of_the_fleet_claim_their_slots() -> None:
    for task in (deployments, partitions, deployments, partitions):
        task()
    assert set(JobSlot.objects.exclude(finished_at=None).values_list("name", flat=True)) == {
        "deployments",
        "partitions",
    }
