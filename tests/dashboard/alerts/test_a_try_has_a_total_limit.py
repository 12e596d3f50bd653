"""An attempt ends at its time limit, even if the channel keeps waiting, and blocks neither other
channels nor the worker."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from dashboard.alerts.channels import CHANNELS
from dashboard.alerts.channels.apprise import Apprise
from dashboard.alerts.models import Delivery
from dashboard.alerts.services import channel_create, channel_test, deliver, deliveries_send
from dashboard.alerts.services.deliver import LEASE, MAX_OVERTIME_S, delivery_claim
from dashboard.common.call_timeout import call_with_timeout
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
ADDRESS = "tgram://123456789:abcdefg_hijklmnop-qrstuvwxyz01/12315544/"


@pytest.fixture
def dripping() -> Iterator[tuple[int, threading.Event]]:
    """A port that answers one byte at a time without end, and an event for the first connection: no
    single read ever waits for long."""
    server, met, over = socket.create_server(("127.0.0.1", 0)), threading.Event(), threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            met.set()
            connection.sendall(b"HTTP/1.1 200 ")
            while not over.wait(0.05):
                connection.sendall(b"x")

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=[server.accept()[0]], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1], met
    over.set()
    server.close()


def test_an_attempt_to_a_dripping_service_is_aborted_and_the_others_continue(
    project: Project,
    dripping: tuple[int, threading.Event],
    slack: StandIn,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    time: Time,
) -> None:
    port, met = dripping
    settings.APPRISE = ("tgram",)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(Apprise, "seconds", 0.5)
    monkeypatch.setattr(deliver, "GRACE_S", 0.1)
    slow = channel_create(
        project=project, kind="apprise", name="on call", address=ADDRESS, actor_name="tests"
    )
    quick = channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )
    for channel in (slow, quick):
        channel_test(channel=channel, actor_name="tests")
    assert deliveries_send() == 1
    assert met.is_set()
    given_up, arrived = Delivery.objects.get(channel=slow), Delivery.objects.get(channel=quick)
    assert (given_up.state, given_up.attempts, given_up.last_answer) == (
        "waiting",
        1,
        "Timed out after 0.5 s.",
    )
    assert arrived.state == "delivered"


def test_no_kind_takes_longer_than_its_lease_or_holds_the_worker_longer() -> None:
    assert {kind: one.seconds for kind, one in CHANNELS.items()} == {
        "slack": 10,
        "webhook": 10,
        "cloudevents": 10,
        "email": 30,
        "apprise": 30,
    }
    assert (
        max(one.seconds for one in CHANNELS.values())
        <= MAX_OVERTIME_S
        < LEASE.total_seconds() - deliver.GRACE_S
    )


def test_while_a_slow_channel_is_in_progress_only_quick_ones_start(
    project: Project, slack: StandIn, settings: Settings, time: Time
) -> None:
    settings.MAIL_READY = True
    mail = channel_create(
        project=project, kind="email", name="box", address="a@example.com", actor_name="tests"
    )
    quick = channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )
    for channel in (mail, quick):
        channel_test(channel=channel, actor_name="tests")
    assert delivery_claim(within=9.9) is None
    claim = delivery_claim(within=29.9)
    assert claim is not None and claim.channel == quick
    assert delivery_claim(within=29.9) is None
    claim = delivery_claim()
    assert claim is not None and claim.channel == mail


def test_a_call_with_a_time_limit_passes_on_results_and_exceptions() -> None:
    assert call_with_timeout(lambda: 7, seconds=60) == 7
    with pytest.raises(ZeroDivisionError):
        call_with_timeout(lambda: 1 // 0, seconds=60)
    with pytest.raises(TimeoutError, match=r"not done within 0\.01 s"):
        call_with_timeout(threading.Event().wait, seconds=0.01)
