"""A server clock that is temporarily hours ahead: every report is folded once, the deployment
continues, and is evaluated immediately after the correction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.wire.messages import Request

from dashboard.alerts.models import Alert
from dashboard.alerts.services import alerts_sync, silences_watch
from dashboard.alerts.services.silence import reset_watch_times
from dashboard.common import clock
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.models import Deployment, Instance, VersionMinute
from dashboard.ingest.models import InboxRow
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison

MINUTE = 29_833_333
HOURS = 5 * 3600.0

pytestmark = pytest.mark.django_db


class Server:
    """A dashboard and its two instances. `ahead` is the error of the dashboard's clock in seconds;
    the clocks of the instances are right."""

    def __init__(self, make_request: Callable[..., Request], store: Callable[..., Any]) -> None:
        self.now, self.ahead, self.numbers = (MINUTE + 1) * 60.0 + 5, 0.0, 0
        self._make, self._store = make_request, store

    def unix(self) -> float:
        return self.now + self.ahead

    def go(self, minutes: int, *, reporting: bool = True, every: int = 1) -> None:
        """Lets this number of minutes pass; the instances report one of `every` minutes."""
        for _ in range(minutes // every):
            self.now += 60 * every
            if reporting:
                self.numbers += 1
                for instance in (1, 2):
                    request = self._make(first_seq=self.numbers, instance=instance, end=self.now)
                    request.sent = self.now
                    self._store(request)
                fold_all()
            end_stale_deployments(now_minute=clock.minute_of(clock.unix()))
            deployments_judge()
            for _ in range(4):
                silences_watch()
                self.now += 15
            self.now -= 60
            alerts_sync()


@pytest.fixture
def server(
    monkeypatch: pytest.MonkeyPatch,
    make_request: Callable[..., Request],
    store_reports: Callable[..., Any],
) -> Iterator[Server]:
    running = Server(make_request, store_reports)
    monkeypatch.setattr(clock, "unix", running.unix)
    reset_watch_times()
    yield running
    reset_watch_times()


def calls() -> int:
    return sum(VersionMinute.objects.values_list("calls", flat=True))


def test_reports_are_counted_once_and_the_deployment_continues(server: Server) -> None:
    server.go(2)
    each = calls() / 2
    before = Deployment.objects.get()
    server.ahead = HOURS
    server.go(2)
    server.ahead = 0
    server.go(2)
    [after] = Deployment.objects.all()
    now = clock.minute_of(clock.unix())
    assert (after.started_minute, after.ended_minute) == (before.started_minute, None)
    assert now - 2 <= after.last_minute <= now
    assert Comparison.objects.get(deployment=after).judged_minute <= now + 1
    server.go(320, every=20)
    assert Deployment.objects.get().ended_minute is None
    assert (calls(), InboxRow.objects.count()) == (each * 22, 0)


def test_a_deployment_is_evaluated_immediately_after_the_clock_is_corrected(server: Server) -> None:
    server.go(2)
    server.ahead = 1200
    server.go(1)
    server.ahead = 0
    server.go(2)
    assert Comparison.objects.get().judged_minute <= clock.minute_of(clock.unix()) + 1


def test_it_raises_no_false_silence_alert_and_a_real_one_is_raised(server: Server) -> None:
    server.go(5)
    server.ahead = HOURS
    server.go(5)
    server.ahead = 0
    server.go(5)
    assert not Alert.objects.exists()
    assert {one.last_seen_at <= clock.now() for one in Instance.objects.all()} == {True}
    server.go(6, reporting=False)
    assert [alert.cause for alert in Alert.objects.all()] == ["fleet_silence"]
