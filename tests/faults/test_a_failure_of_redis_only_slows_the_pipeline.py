"""Failures of Redis and of a scheduler only slow the pipeline down: reports are accepted, folded and
judged; each process logs the problem once; hung workers are replaced."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.full import FullStack, Traffic
from tests.faults.size import FULL, sized
from tests.flow.stack import REPOSITORY, wait_for

pytestmark = pytest.mark.timeout(sized(900, 3600))
AddResult = Callable[..., None]
AWAY, BACK = "is unavailable (", "is available again"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullStack]:
    """One dashboard for all tests of this file."""
    running = FullStack(tmp_path_factory.mktemp("full"))
    try:
        running.start(channel="http://127.0.0.1:9/none")
        running.supervise()
        wait_for("the worker folds", lambda: claimed(running, "fold"), seconds=300)
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


@pytest.fixture
def traffic(full: FullStack) -> Iterator[Traffic]:
    """Continuous reports."""
    coming = Traffic(full, every=sized(200, 50) / 1000)
    yield coming
    coming.stop()


def claimed(stack: FullStack, name: str) -> int:
    """Number of claimed slots of a job."""
    return int(stack.rows(f"SELECT count(*) FROM job_slot WHERE name = '{name}'")[0][0])


def newest(stack: FullStack, name: str) -> int:
    """The newest claimed slot of a job."""
    return int(
        stack.rows(f"SELECT coalesce(max(slot), 0) FROM job_slot WHERE name = '{name}'")[0][0]
    )


def goes_on(stack: FullStack, traffic: Traffic, seconds: float) -> None:
    """Reports from now on are folded, and minutes are judged."""
    swept = ("judge", "alert", "deliver", "deployments") if FULL else ("judge",)
    slots = {name: newest(stack, name) for name in swept}
    before = traffic.calls
    wait_for("more reports", lambda: traffic.calls > before, seconds=120)
    last = stack.rows("SELECT coalesce(max(id), 0) FROM ingest_inbox")[0][0]
    wait_for(
        "the new reports are folded",
        lambda: not stack.rows(f"SELECT 1 FROM ingest_inbox WHERE id <= {last} LIMIT 1"),
        seconds=seconds,
    )
    for name, slot in slots.items():
        wait_for(
            f"{name} is swept",
            lambda name=name, slot=slot: newest(stack, name) > slot,
            seconds=seconds,
        )


def killed(stack: FullStack, seconds: float, traffic: Traffic) -> None:
    stack.redis.kill()
    time.sleep(seconds)
    goes_on(stack, traffic, 300)
    stack.redis.start()


def flushed(stack: FullStack, seconds: float, traffic: Traffic) -> None:
    for _ in range(int(seconds / 5) + 1):
        stack.redis.client.flushall()
        time.sleep(min(5.0, seconds))


def full_memory(stack: FullStack, seconds: float, traffic: Traffic) -> None:
    stack.redis.client.config_set("maxmemory", "1mb")
    time.sleep(seconds)
    goes_on(stack, traffic, 300)
    stack.redis.client.config_set("maxmemory", "0")


def stopped(stack: FullStack, seconds: float, traffic: Traffic) -> None:
    stack.redis.signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
        goes_on(stack, traffic, 300)
    finally:
        stack.redis.signal(signal.SIGCONT)


def test_the_running_worker_has_the_options_of_the_design(full: FullStack) -> None:
    ask = "app.control.inspect(timeout=20, limit=1).conf(with_defaults=True)"
    program = f"import json; from dashboard.celery import app; print(json.dumps({ask}))"
    command = [sys.executable, "-c", program]
    answer = wait_for(
        "a response",
        lambda: json.loads(subprocess.check_output(command, cwd=REPOSITORY, env=full.environment)),
        seconds=300,
    )
    [conf] = answer.values()
    wanted = {
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_time_limit": 300,
        "task_soft_time_limit": 240,
        "worker_prefetch_multiplier": 1,
        "worker_max_tasks_per_child": 2000,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_max_retries": None,
    }
    assert {name: conf[name] for name in wanted} == wanted
    options = conf["broker_transport_options"]
    assert (
        options["visibility_timeout"],
        options["socket_timeout"],
        options["socket_connect_timeout"],
    ) == (300, 1, 1)


@pytest.mark.parametrize(
    "harm", [killed, flushed, full_memory, stopped] if FULL else [killed, stopped]
)
def test_redis_fails(
    harm: Callable[..., None], full: FullStack, traffic: Traffic, add_result: AddResult
) -> None:
    time.sleep(sized(1, 20))
    logged, back = full.log("worker").count(AWAY), full.log("worker").count(BACK)
    restarts, began = full.restarts, time.monotonic()
    harm(full, sized(1, 60), traffic)
    ended = time.monotonic()
    goes_on(full, traffic, sized(300, 15))
    lag = time.monotonic() - ended
    if harm is not flushed and full.restarts == restarts:
        wait_for(
            "the worker logs that Redis is back",
            lambda: full.log("worker").count(BACK) > back,
            seconds=120,
        )
    traffic.stop()
    wait_for("everything is folded", full.folded, seconds=120)
    assert traffic.statuses() == {200}
    # One log line per process: the worker, and the child that runs its tasks.
    if full.restarts == restarts:
        assert full.log("worker").count(AWAY) - logged <= 2
    assert "Traceback" not in full.log("worker")
    if FULL:
        assert traffic.p99(began, ended) <= traffic.p99(0, began) + 0.05
    figures = {
        "p99 ms before": round(traffic.p99(0, began) * 1e3, 1),
        "p99 ms during": round(traffic.p99(began, ended) * 1e3, 1),
    }
    add_result(
        "23",
        harm=harm.__name__,
        answered=len(traffic.answers),
        **figures,
        **{"lag after s": round(lag, 1)},
    )


def test_three_schedulers_run_each_slot_once(full: FullStack, add_result: AddResult) -> None:
    with_triggers(full)
    with more_workers(full):
        before = newest(full, "deployments")
        wait_for(
            "some slots",
            lambda: newest(full, "deployments") >= before + sized(1, 60),
            seconds=sized(300, 1200),
        )
    finishes = full.rows("SELECT name, slot, count(*) FROM job_finish GROUP BY 1, 2")
    assert len(finishes) >= sized(1, 50)
    assert {count for _, _, count in finishes} == {1}
    add_result("22", slots=len(finishes), schedulers=3)


@contextlib.contextmanager
def more_workers(stack: FullStack) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two further workers, each with its own scheduler."""
    celery = [str(Path(sys.executable).parent / "celery"), "-A", "dashboard.celery", "--quiet"]
    more = []
    for name in ("second", "third"):
        words = [*celery, "worker", "--concurrency", "1", "--hostname", f"{name}@%h"]
        with (stack.folder / f"{name}.log").open("ab") as log:
            more.append(
                subprocess.Popen(
                    words,
                    cwd=REPOSITORY,
                    env=stack.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
    try:
        yield more
    finally:
        for worker in more:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def with_triggers(stack: FullStack) -> None:
    """The database records every end of a job."""
    stack.run(
        "CREATE TABLE IF NOT EXISTS job_finish (name text, slot bigint)",
        "CREATE OR REPLACE FUNCTION job_finished() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO job_finish VALUES (NEW.name, NEW.slot); RETURN NEW; END $$",
        "CREATE OR REPLACE TRIGGER job_finished AFTER UPDATE ON job_slot FOR EACH ROW "
        "EXECUTE FUNCTION job_finished()",
    )


def test_a_frozen_worker_stops_no_stage_of_the_others(
    full: FullStack, traffic: Traffic, add_result: AddResult
) -> None:
    """Its scheduler may have claimed a slot whose task it never sends."""
    with more_workers(full) as more:
        time.sleep(sized(10, 20))
        for worker in more:
            os.killpg(worker.pid, signal.SIGSTOP)
        time.sleep(sized(1, 600))
        began = time.monotonic()
        goes_on(full, traffic, sized(300, 60))
        add_result("22", **{"swept with two frozen after s": round(time.monotonic() - began, 1)})


def test_a_worker_that_no_longer_takes_tasks_is_restarted(
    full: FullStack, add_result: AddResult
) -> None:
    goes = full.restarts
    program = (
        "from dashboard.celery import app; app.control.cancel_consumer('celery', reply=True, "
        "timeout=20)"
    )
    subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=full.environment, check=True
    )
    began = time.monotonic()
    wait_for("the worker is restarted", lambda: full.restarts > goes, seconds=sized(300, 120))
    add_result("24", **{"restarted after s": round(time.monotonic() - began, 1)})
    assert "this worker exits so that its supervisor restarts it" in full.log("worker")
    wait_for("tasks are taken again", lambda: full.redis.client.llen("celery") == 0, seconds=300)


def test_a_worker_that_receives_sigterm_finishes_its_fold(
    full: FullStack, traffic: Traffic
) -> None:
    wait_for("reports", lambda: traffic.calls, seconds=120)
    worker = full.processes["worker"]
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert full.rows("SELECT count(*) FROM ingest_fold_attempt")[0][0] == 0
    full.start_role("worker")
    traffic.stop()
    wait_for("everything is folded", full.folded, seconds=300)
    assert full.rows("SELECT error, count(*) FROM ingest_poison GROUP BY 1") == []
