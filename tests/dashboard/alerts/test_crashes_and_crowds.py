"""Workers that die at any point, and concurrent workers: exactly one alert, no loss, at most one
duplicate with the same ID."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings as django_settings
from django.db import connection

from dashboard.accounts.models import User
from dashboard.alerts.models import (
    Alert,
    AlertEvent,
    AlertGroup,
    Channel,
    Delivery,
    DeliveryAttempt,
)
from dashboard.alerts.services import (
    alert_acknowledge,
    alerts_correlate,
    alerts_sync,
    channel_create,
    channel_test,
    deliveries_send,
)
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn
from tests.environment import DATA

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hook(project: Project, slack: StandIn, time: Time) -> Channel:
    """A webhook, whose receiver finds the message ID in a header."""
    return channel_create(
        project=project, kind="webhook", name="ci", address=slack.url, actor_name="tests"
    )


@pytest.fixture
def regressed(fleet: Fleet, new: Deployment) -> Iterator[Deployment]:
    fleet.say(new, "roll_back")
    yield new
    connection.close()


def worker(point: str, slack: StandIn) -> subprocess.Popen[bytes]:
    here = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite://{here['NAME']}"
    else:
        url = f"postgresql://{here['USER']}@{here['HOST']}:{here['PORT']}/{here['NAME']}"
    wanted = {"DATABASE_URL": url, "DATA": str(DATA), "OUTBOUND_ALLOW": f"127.0.0.1:{slack.port}"}
    environ = {**os.environ, **{f"COMPILEWATCH_{name}": value for name, value in wanted.items()}}
    command = [sys.executable, "-m", "tests.dashboard.alerts.worker", point, str(clock.unix())]
    return subprocess.Popen(
        command, env={**environ, "PYTHONPATH": ".:agents"}, cwd=django_settings.REPOSITORY
    )


def crash(point: str, slack: StandIn) -> None:
    assert worker(point, slack).wait(timeout=120) == 9


def afterwards(time: Time) -> None:
    """The work of the next workers: sweeps and deliveries until a lease and the first waits have
    ended."""
    for _ in range(4):
        alerts_sync()
        deliveries_send()
        time.go(31)


@pytest.mark.parametrize(
    ("point", "messages"),
    [("opening", 1), ("leased", 1), ("sent", 2), ("marking", 2), ("marked", 1)],
)
def test_a_worker_that_dies_loses_nothing(
    point: str, messages: int, regressed: Deployment, hook: Channel, slack: StandIn, time: Time
) -> None:
    crash(point, slack)
    afterwards(time)
    assert Alert.objects.count() == 1
    delivery = Delivery.objects.get()
    assert delivery.state == "delivered"
    assert [headers["webhook-id"] for headers in slack.headers] == [delivery.message_id] * messages
    assert [message["data"]["alert"]["id"] for message in slack.messages] == ["A-1"] * messages
    assert list(AlertEvent.objects.order_by("pk").values_list("kind", flat=True)) == [
        "opened",
        "delivered",
    ]
    unended = DeliveryAttempt.objects.filter(ended_at=None).count()
    assert unended == (1 if point in ("leased", "sent", "marking") else 0)


@pytest.fixture
def together(fleet: Fleet, old: Deployment, regressed: Deployment) -> None:
    """Two versions with a ROLL BACK verdict on one machine."""
    for deployment in (old, regressed):
        fleet.run(deployment, "gpu-7")
    fleet.say(old, "roll_back")


@pytest.mark.parametrize(
    "points",
    [
        ["opening"],
        ["grouping"],
        ["grouping", "merging"],
        ["never", "merging", "merging"],
        ["never", "leased"],
    ],
)
def test_a_worker_that_dies_while_alerts_are_grouped_loses_nothing(
    points: list[str], together: None, hook: Channel, slack: StandIn, time: Time
) -> None:
    for point in points:
        assert worker(point, slack).wait(timeout=120) == (0 if point == "never" else 9)
        time.go(4)
    for _ in range(4):
        alerts_sync()
        alerts_correlate()
        deliveries_send()
        time.go(31)
    [message] = slack.messages
    assert (
        message["data"]["group"]["title"]
        == "Possible common cause: 2 alerts share machine gpu-7, GPU NVIDIA H100, torch 2.11"
    )
    assert sorted(line["id"] for line in message["data"]["alerts"]) == ["A-1", "A-2"]
    kinds = AlertEvent.objects.order_by("alert__number", "pk").values_list("kind", flat=True)
    assert list(kinds) == ["opened", "grouped", "delivered"] * 2


def test_concurrent_workers_group_alerts_once(
    together: None, hook: Channel, slack: StandIn, time: Time
) -> None:
    for _ in range(2):
        workers = [worker("never", slack) for _ in range(3)]
        assert [process.wait(timeout=120) for process in workers] == [0, 0, 0]
        time.go(4)
    assert (AlertGroup.objects.count(), AlertEvent.objects.filter(kind="grouped").count()) == (1, 2)
    assert [message["type"] for message in slack.messages] == ["alerts.digest"]


def test_a_lease_keeps_others_away_until_it_ends(
    regressed: Deployment, hook: Channel, slack: StandIn, time: Time
) -> None:
    crash("leased", slack)
    time.go(59)
    assert deliveries_send() == 0
    time.go(2)
    assert deliveries_send() == 1


def test_a_resolution_waits_for_a_message_in_flight(
    regressed: Deployment, fleet: Fleet, hook: Channel, slack: StandIn, time: Time
) -> None:
    crash("sent", slack)
    fleet.say(regressed, "healthy")
    afterwards(time)
    types = [message["type"] for message in slack.messages]
    assert types == ["alert.opened", "alert.opened", "alert.resolved"]


def test_concurrent_processes_make_one_alert_and_one_message(
    fleet: Fleet, old: Deployment, regressed: Deployment, hook: Channel, slack: StandIn
) -> None:
    fleet.say(old, "roll_back")
    workers = [worker("never", slack) for _ in range(3)]
    assert [process.wait(timeout=120) for process in workers] == [0, 0, 0]
    assert sorted(Alert.objects.values_list("number", flat=True)) == [1, 2]
    assert sorted(headers["webhook-id"] for headers in slack.headers) == sorted(
        Delivery.objects.values_list("message_id", flat=True)
    )
    assert len(slack.headers) == 2


def test_concurrent_threads_deliver_every_message_once_and_in_order(
    project: Project, regressed: Deployment, hook: Channel, slack: StandIn, user: User
) -> None:
    other = channel_create(
        project=project, kind="webhook", name="cd", address=slack.url, actor_name="tests"
    )
    for _ in range(10):
        for channel in (hook, other):
            channel_test(channel=channel, actor_name="test")
    gate = threading.Barrier(4)

    def work() -> None:
        try:
            gate.wait()
            for _ in range(30):
                alerts_sync()
                deliveries_send()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    deliveries_send()
    assert Alert.objects.count() == 1
    assert set(Delivery.objects.values_list("state", "attempts")) == {("delivered", 1)}
    received = [headers["webhook-id"] for headers in slack.headers]
    for channel in (hook, other):
        owed = Delivery.objects.filter(channel=channel).order_by("pk")
        for rows in (
            owed.filter(kind="test"),
            owed.exclude(kind="test"),
        ):  # an alert may overtake a test message
            ids = list(rows.values_list("message_id", flat=True))
            assert [one for one in received if one in set(ids)] == ids
    assert len(received) == Delivery.objects.count() == 22


def test_people_and_sweeps_do_not_overwrite_each_other(
    fleet: Fleet, regressed: Deployment, user: User, time: Time
) -> None:
    alerts_sync()
    alert = Alert.objects.get()
    gate = threading.Barrier(2)

    def acknowledge() -> None:
        gate.wait()
        alert_acknowledge(alert=alert, user=user)
        connection.close()

    thread = threading.Thread(target=acknowledge)
    fleet.say(regressed, "watch")
    thread.start()
    gate.wait()
    alerts_sync()
    thread.join()
    alert.refresh_from_db()
    assert (alert.state, alert.severity, alert.owner) == ("acknowledged", "watch", user)
