"""A deployment opens with traffic and ends after 30 minutes without, by the minutes of the data,
regardless of their arrival."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import Request

from dashboard.common import clock
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.models import Deployment

MINUTE = 29_833_333
NOW = (MINUTE + 1) * 60.0 + 5

Store = Callable[..., object]
MakeRequest = Callable[..., Request]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)


@pytest.fixture
def send(make_request: MakeRequest, store_reports: Store) -> Callable[..., None]:
    """`send((first, last), ...)` sends one report a minute for each range of minutes before now;
    each range comes from its own instance."""
    sent = 0

    def send(*stretches: tuple[int, int], version: str = "1", **fields: object) -> None:
        nonlocal sent
        for first, last in stretches:
            sent += 1
            end = (MINUTE + last + 1) * 60.0
            request = make_request(
                version=version, instance=sent, minutes=last - first + 1, end=end, **fields
            )
            store_reports(replace(request, sent=NOW))
            fold_all()

    return send


def deployments(version: str = "1") -> list[tuple[int, int, int | None]]:
    found = Deployment.objects.filter(version__name=version).order_by("started_minute")
    return [
        (
            row.started_minute - MINUTE,
            row.last_minute - MINUTE,
            None if row.ended_minute is None else row.ended_minute - MINUTE,
        )
        for row in found
    ]


def test_traffic_now_is_a_live_deployment(send: Callable[..., None]) -> None:
    send((-5, 0))
    assert deployments() == [(-5, 0, None)]


def test_an_hour_of_silence_starts_a_second_deployment(send: Callable[..., None]) -> None:
    send((-120, -90), (-20, 0))
    assert deployments() == [(-120, -90, -90), (-20, 0, None)]


def test_half_an_hour_of_silence_does_not(send: Callable[..., None]) -> None:
    send((-60, -40), (-10, 0))
    assert deployments() == [(-60, 0, None)]


def test_past_data_alone_is_an_ended_deployment(send: Callable[..., None]) -> None:
    send((-300, -240))
    assert deployments() == [(-300, -240, -240)]


def test_data_in_the_gap_joins_two_deployments_and_keeps_the_newest(
    send: Callable[..., None],
) -> None:
    send((-120, -100), (-20, 0))
    newest = Deployment.objects.latest("started_minute").pk
    send((-80, -45))
    assert deployments() == [(-120, 0, None)]
    assert Deployment.objects.get().pk == newest


@pytest.mark.parametrize("seed", range(4))
def test_ranges_in_any_order_give_the_same_deployments(
    send: Callable[..., None], seed: int
) -> None:
    stretches = [(-200, -190), (-185, -170), (-120, -110), (-60, -31), (-25, 0)]
    random.Random(seed).shuffle(stretches)
    send(*stretches)
    assert deployments() == [(-200, -170, -170), (-120, -110, -110), (-60, 0, None)]


def test_a_deployment_ends_after_thirty_minutes_without_data_and_a_late_report_reopens_it(
    send: Callable[..., None],
) -> None:
    send((-5, 0))
    assert end_stale_deployments(now_minute=MINUTE + 30) == 0
    assert end_stale_deployments(now_minute=MINUTE + 31) == 1
    assert deployments() == [(-5, 0, 0)]
    send((-2, 0))
    assert deployments() == [(-5, 0, None)]


def test_each_environment_and_version_has_its_own_deployment(send: Callable[..., None]) -> None:
    send((-5, 0), environment="staging")
    send((-5, 0), environment="production")
    send((-3, 0), version="2")
    assert Deployment.objects.count() == 3
    assert Deployment.objects.filter(ended_minute=None).count() == 3


def test_a_long_window_counts_as_traffic(make_request: MakeRequest, store_reports: Store) -> None:
    store_reports(
        replace(make_request(minutes=1, end=(MINUTE + 1) * 60.0, window=7200.0), sent=NOW)
    )
    fold_all()
    assert deployments() == [(-119, 0, None)]
