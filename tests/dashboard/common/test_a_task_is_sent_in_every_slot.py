"""Each slot of a stage gets one task, from one worker, when the slot begins; without Redis the
worker runs the stage itself at once."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from kombu.exceptions import OperationalError as BrokerError

from dashboard import scheduler
from dashboard.celery import app as celery_app
from dashboard.common import clock
from dashboard.common.models import JobSlot
from dashboard.common.redis_status import BrokerStatus
from dashboard.pipeline import STAGES
from dashboard.scheduler import Sweeper, TaskSender
from tests.flow.stack import REDIS_URL, free_port
from tests.machine import need

NOON = 1_790_000_040.0
FOLD = "dashboard.fleet.tasks.fold"
WAITING = {
    FOLD,
    "dashboard.alerts.tasks.deliver",
    "dashboard.alerts.tasks.switch",
}
"""The tasks of the stages whose work can be seen in one query."""


class Application:
    """Celery's application, reduced to a list of the tasks that are sent and run."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.ran: list[str] = []
        self.tasks = {stage.task: self._make_task(stage.task) for stage in STAGES}

    def _make_task(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(
            apply_async=lambda **named: self.sent.append((name, named)),
            run=lambda swept: self.ran.append(name),
        )


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The wall clock."""
    moved = SimpleNamespace(seconds=NOON)
    monkeypatch.setattr(clock, "unix", lambda: moved.seconds)
    return moved


@pytest.fixture
def broker(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> BrokerStatus:
    """An empty Redis."""
    need("Redis")
    settings.EMBEDDED, settings.CELERY_BROKER_URL = False, REDIS_URL
    status = BrokerStatus()
    monkeypatch.setattr(scheduler, "BROKER", status)
    status._ask(("flushdb",))
    return status


def send(seconds: int, now: SimpleNamespace, *senders: TaskSender) -> None:
    for _ in range(seconds):
        for sender in senders:
            sender.send_due()
        now.seconds += 1


def expected(seconds: int) -> dict[str, int]:
    """Number of slots of each stage that begin or are in progress in these seconds."""
    last = NOON + seconds - 1
    return {stage.task: int(last // stage.every - NOON // stage.every) + 1 for stage in STAGES}


def counts(app: Application) -> dict[str, int]:
    return {stage.task: [name for name, _ in app.sent].count(stage.task) for stage in STAGES}


@pytest.mark.django_db
def test_the_embedded_server_sends_one_task_for_each_slot_of_a_stage_with_work(
    now: SimpleNamespace, settings: LazySettings, store_reports: Any, make_request: Any
) -> None:
    settings.EMBEDDED = True
    app = Application()
    store_reports(make_request(minutes=1))
    send(90, now, TaskSender(app))  # type: ignore[arg-type]
    assert counts(app) == expected(90) | dict.fromkeys(WAITING - {FOLD}, 9)


@pytest.mark.django_db
def test_the_embedded_server_runs_a_stage_without_work_every_ten_seconds(
    now: SimpleNamespace, settings: LazySettings
) -> None:
    settings.EMBEDDED = True
    app = Application()
    send(90, now, TaskSender(app))  # type: ignore[arg-type]
    assert counts(app) == expected(90) | dict.fromkeys(WAITING, 9)
    assert {stage.task for stage in STAGES if stage.waiting} == WAITING


@pytest.mark.django_db
def test_frequent_stages_of_the_embedded_server_write_no_claim(
    now: SimpleNamespace, settings: LazySettings
) -> None:
    settings.EMBEDDED = True
    app = Application()
    send(10, now, TaskSender(app))  # type: ignore[arg-type]
    frequent = {stage.task for stage in STAGES if stage.every < 10}
    assert {name for name, named in app.sent if not named["kwargs"]["swept"]} == frequent
    celery_app.loader.import_default_modules()
    for task in frequent:
        celery_app.tasks[task].run(swept=False)
    assert not JobSlot.objects.exists()


@pytest.mark.django_db
def test_a_report_that_arrives_at_an_idle_server_is_folded_in_the_next_second(
    now: SimpleNamespace, settings: LazySettings, store_reports: Any, make_request: Any
) -> None:
    settings.EMBEDDED = True
    app = Application()
    sender = TaskSender(app)  # type: ignore[arg-type]
    send(3, now, sender)
    before = counts(app)[FOLD]
    store_reports(make_request(minutes=1))
    send(1, now, sender)
    assert counts(app)[FOLD] == before + 1


def test_of_three_workers_one_sends_each_task(now: SimpleNamespace, broker: BrokerStatus) -> None:
    app = Application()
    send(45, now, *(TaskSender(app) for _ in range(3)))  # type: ignore[arg-type]
    assert counts(app) == expected(45)


def test_a_worker_that_starts_late_sends_no_task_again(
    now: SimpleNamespace, broker: BrokerStatus
) -> None:
    app = Application()
    send(10, now, TaskSender(app))  # type: ignore[arg-type]
    now.seconds -= 1
    before = len(app.sent)
    TaskSender(app).send_due()  # type: ignore[arg-type]
    assert len(app.sent) == before


def test_a_task_is_dropped_when_later_slots_do_its_work(
    now: SimpleNamespace, broker: BrokerStatus
) -> None:
    app = Application()
    TaskSender(app).send_due()  # type: ignore[arg-type]
    for name, named in app.sent:
        [stage] = [one for one in STAGES if one.task == name]
        assert named == {
            "kwargs": {"swept": True},
            "expires": max(10.0, stage.every),
            "retry": False,
        }


def test_without_redis_no_task_is_sent_and_each_slot_is_run_once(
    now: SimpleNamespace, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED, settings.CELERY_BROKER_URL = False, f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(scheduler, "BROKER", BrokerStatus())
    app = Application()
    send(1, now, TaskSender(app))  # type: ignore[arg-type]
    assert app.sent == []
    sweeper = Sweeper(app)  # type: ignore[arg-type]
    now.seconds = NOON
    for _ in range(45):
        sweeper._sweep(away=True)
        sweeper._sweep(away=True)
        now.seconds += 1
    assert {stage.task: app.ran.count(stage.task) for stage in STAGES} == expected(45)


@pytest.mark.django_db(transaction=True)
def test_a_sender_that_fails_once_sends_the_next_slot(
    now: SimpleNamespace, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED = True
    app = Application()
    sender = TaskSender(app)  # type: ignore[arg-type]
    calls, real, done = [], sender.send_due, threading.Event()

    def fail_once() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("gone")
        real()
        done.set()

    monkeypatch.setattr(scheduler, "TICK_S", 0.01)
    monkeypatch.setattr(scheduler, "BROKER", BrokerStatus())
    monkeypatch.setattr(sender, "send_due", fail_once)
    sender.start()
    assert done.wait(60)
    sender.stop()
    sender.join(60)
    assert app.sent


@pytest.mark.django_db
@pytest.mark.parametrize("embedded", [True, False])
def test_a_task_that_could_not_be_sent_is_sent_again_in_the_same_slot(
    embedded: bool, now: SimpleNamespace, broker: BrokerStatus, settings: LazySettings
) -> None:
    settings.EMBEDDED = embedded
    app, failures = Application(), [BrokerError("gone")] * 3
    works = {name: task.apply_async for name, task in app.tasks.items()}

    def fail(name: str, **named: Any) -> None:
        if failures:
            raise failures.pop()
        works[name](**named)

    for name, task in app.tasks.items():
        task.apply_async = partial(fail, name)
    sender, other = TaskSender(app), TaskSender(app)  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(BrokerError):
            sender.send_due()
        if not embedded:
            other.send_due()
    assert app.sent == []
    sender.send_due()
    assert counts(app) == {stage.task: 1 for stage in STAGES}


def test_a_slot_is_sent_when_the_answer_of_redis_was_lost(
    now: SimpleNamespace, broker: BrokerStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, ask = Application(), broker._ask
    sender, other = TaskSender(app), TaskSender(app)  # type: ignore[arg-type]
    monkeypatch.setattr(broker, "_ask", lambda *commands: ask(*commands) and None)
    sender.send_due()
    monkeypatch.setattr(broker, "_ask", ask)
    for one in (other, sender, sender):
        one.send_due()
    assert counts(app) == {stage.task: 1 for stage in STAGES}


def test_a_stage_that_fails_stops_no_other_stage_without_redis(now: SimpleNamespace) -> None:
    app = Application()

    def fail(swept: bool) -> None:
        raise RuntimeError("broken")

    app.tasks[STAGES[0].task].run = fail
    Sweeper(app)._sweep(away=True)  # type: ignore[arg-type]
    assert app.ran == [stage.task for stage in STAGES[1:]]


def test_an_error_of_the_database_is_raised_after_the_other_stages(now: SimpleNamespace) -> None:
    app = Application()

    def fail(swept: bool) -> None:
        raise OperationalError("canceling statement due to lock timeout")

    app.tasks[STAGES[0].task].run = fail
    with pytest.raises(OperationalError):
        Sweeper(app)._sweep(away=True)  # type: ignore[arg-type]
    assert app.ran == [stage.task for stage in STAGES[1:]]
