"""Fixtures of two versions of a simulated model that ran side by side, folded and ready for
evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.wire.messages import VERSION, Request

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.fleet.fold_service import fold_all
from dashboard.regressions.comparison_cache import clear_comparisons

JUDGED_MINUTES = 40
NOW_MINUTE = 29_900_000


class Clock:
    """The clock of the dashboard; tests move it."""

    def __init__(self) -> None:
        self.minute = NOW_MINUTE

    def unix(self) -> float:
        """Slightly more than half a minute after the end of the last minute, so that this minute is
        closed."""
        return self.minute * 60.0 + 35.0


@pytest.fixture
def time_is(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """`time_is.minute = ...` moves the clock without waiting."""
    stopped = Clock()
    monkeypatch.setattr(clock, "unix", stopped.unix)
    return stopped


@pytest.fixture
def side_by_side(
    time_is: Clock, store_reports: Callable[..., Any]
) -> Iterator[list[SimulatedInstance]]:
    """Three instances of each version of `ranker`: the newer version is slower and partly eager for
    39 minutes. No report is sent yet."""
    clear_comparisons()
    found = build_instances(build_fleet(judged_minutes=JUDGED_MINUTES)[:1], start_minute=NOW_MINUTE)
    for instance in found:
        instance.first_minute = max(instance.first_minute, NOW_MINUTE - 70)
    yield found
    clear_comparisons()


@pytest.fixture
def send(store_reports: Callable[..., Any]) -> Callable[..., None]:
    """`send(instance, first, last)` stores and folds the windows of an instance with these numbers,
    counted from 1."""

    def sent(instance: SimulatedInstance, first: int = 1, last: int = 10_000) -> None:
        reports = [*build_past_reports(instance, start_minute=NOW_MINUTE, first=first, last=last)]
        store_reports(Request(VERSION, clock.unix(), instance.identity, reports))
        fold_all()

    return sent
