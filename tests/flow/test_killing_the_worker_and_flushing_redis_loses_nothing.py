"""kill -9 of the worker (of everything, when embedded) and a flush of Redis in the middle: the counts equal what was recorded."""

import threading
import time

import pytest
import redis
from compilewatch.wire.codec import dumps
from compilewatch.wire.report import VERSION, Request

from dashboard.demo.fleet import SimulatedInstance, fleet, instances
from dashboard.demo.sender import batches, past
from tests.flow.stack import REDIS_URL, Stack, answer_of, wait_for

pytestmark = pytest.mark.timeout(300)


class Recorded:
    """What the senders recorded, whether or not the first try was answered."""

    def __init__(self) -> None:
        self.calls = self.windows = 0
        self.guard = threading.Lock()


def send_all(stack: Stack, instance: SimulatedInstance, start_minute: int, recorded: Recorded) -> None:
    """Sends 6 h of one instance like an agent: the same bytes again until they are acknowledged."""
    for batch in batches(past(instance, start_minute=start_minute)):
        body = dumps(Request(VERSION, time.time(), instance.identity, batch[:16]))
        with recorded.guard:
            recorded.windows += len(batch[:16])
            recorded.calls += sum(region.calls for report in batch[:16] for region in report.regions)
        deadline = time.monotonic() + 120
        while answer_of(stack.port, stack.key, body)[0] != 200:
            assert time.monotonic() < deadline, "never acknowledged"
            time.sleep(0.3)
        time.sleep(0.05)


def disturb(stack: Stack, stopping: threading.Event) -> int:
    """Kills and restarts until the senders are done; returns how often."""
    role, kills = stack.roles[-1], 0
    while not stopping.wait(2.5):
        if stack.database == "postgresql":
            redis.Redis.from_url(REDIS_URL).flushdb()
        stack.kill(role)
        kills += 1
        time.sleep(0.5)
        stack.start_role(role)
    return kills


def test_killing_the_worker_and_flushing_redis_loses_nothing(stack: Stack) -> None:
    start_minute = int(time.time() // 60) - 1
    fleet_of_all = instances(fleet(judged_minutes=40), start_minute=start_minute)
    for instance in fleet_of_all:
        instance.first_minute = max(instance.first_minute, start_minute - 360)
    recorded, stopping, kills = Recorded(), threading.Event(), [0]
    disturber = threading.Thread(target=lambda: kills.__setitem__(0, disturb(stack, stopping)))
    senders = [threading.Thread(target=send_all, args=(stack, instance, start_minute, recorded)) for instance in fleet_of_all]
    for thread in [disturber, *senders]:
        thread.start()
    for thread in senders:
        thread.join()
    stopping.set()
    disturber.join()
    assert kills[0] >= 1

    wait_for("everything is folded", stack.folded, seconds=120)
    assert stack.rows("SELECT sum(calls) FROM version_hour")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(calls) FROM version_minute")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(calls) FROM region_minute")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(windows) FROM process_minute")[0][0] == recorded.windows
    assert stack.rows("SELECT count(*) FROM ingest_poison")[0][0] == 0
