"""A server clock that is temporarily years ahead deletes nothing; retention resumes after the clock
has been right for a day."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.tasks import retention
from dashboard.projects.models import Project
from dashboard.projects.retention import read_retention

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
START = 20_000 * DAY + 45_000

pytestmark = pytest.mark.django_db


class Time:
    """The wall clock; each hour that passes runs the sweep."""

    seconds = float(START)

    def __call__(self) -> float:
        return self.seconds

    def go(self, hours: float) -> None:
        for _ in range(int(hours)):
            self.seconds += HOUR
            retention()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    going = Time()
    monkeypatch.setattr(clock, "unix", going)
    return going


@pytest.fixture
def report(
    store_reports: Callable[..., Any], make_request: Callable[..., Any]
) -> Callable[[], None]:
    """One minute of one instance arrives now and is folded."""
    numbers = iter(range(1, 1000))

    def send() -> None:
        store_reports(make_request(first_seq=next(numbers)))
        fold_all()

    return send


def days() -> list[int]:
    return sorted(set(RegionMinute.objects.values_list("day", flat=True)))


def test_a_clock_that_is_briefly_a_year_ahead_deletes_nothing(
    time: Time, report: Callable[[], None], project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    report()
    time.go(30)
    today = days()
    assert len(today) == 1
    time.seconds += YEAR
    with caplog.at_level(logging.WARNING):
        report()
        retention()
        time.seconds += 61
        retention()
    assert set(today) < set(days())
    assert [one.message for one in caplog.records] == [
        "no rows are deleted: by this machine's clock (2025-10-05 18:30 UTC), no retention "
        "ran about a day ago. Check the clock; deletion continues after 20 hours"
        " with a correct clock."
    ]
    time.seconds -= YEAR
    time.go(30)
    assert set(today) < set(days())


def test_expired_rows_are_deleted_after_the_clock_was_right_for_a_day(
    time: Time, report: Callable[[], None], project: Project
) -> None:
    report()
    time.seconds += (read_retention(project.settings).instance_minutes + 2) * DAY
    time.go(19)
    assert len(days()) == 1
    time.go(3)
    assert days() == []
