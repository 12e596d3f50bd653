"""kill -9 of the worker (of everything, when embedded) and a flush of Redis during the run: the
counts equal the recorded calls."""

import re
import threading
import time

import pytest
import redis
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import VERSION, Report, Request

from dashboard.demo.sender import batch_reports, build_past_reports
from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from tests.flow.stack import REDIS_URL, Stack, answer_of, wait_for

pytestmark = pytest.mark.timeout(300)


KILLS = 2


class Recorded:
    """Calls that the senders recorded, whether or not the first try was answered."""

    def __init__(self) -> None:
        self.calls = self.windows = 0
        self.guard = threading.Lock()

    def note(self, reports: list[Report]) -> None:
        """Adds reports before they are sent."""
        with self.guard:
            self.windows += len(reports)
            self.calls += sum(region.calls for report in reports for region in report.regions)


def send_all(
    stack: Stack,
    instance: SimulatedInstance,
    start_minute: int,
    recorded: Recorded,
    disturbed: threading.Event,
) -> None:
    """Sends 6 h of one instance like an agent: the same bytes again until acknowledged; the last
    part after the kills."""
    parts = list(batch_reports(build_past_reports(instance, start_minute=start_minute)))
    for number, reports in enumerate(parts):
        if number == len(parts) - 2:
            assert disturbed.wait(120)
        recorded.note(reports)
        body = dumps(Request(VERSION, time.time(), instance.identity, reports))
        deadline = time.monotonic() + 120
        while answer_of(stack.port, stack.key, body)[0] != 200:
            assert time.monotonic() < deadline, "never acknowledged"
            time.sleep(0.3)
        time.sleep(0.2)


def disturb(stack: Stack, disturbed: threading.Event) -> None:
    """Kills and restarts the folding processes, and flushes the broker, while reports arrive."""
    role = stack.roles[-1]
    for _ in range(KILLS):
        time.sleep(1.5)
        if stack.database == "postgresql":
            redis.Redis.from_url(REDIS_URL).flushdb()
        stack.kill(role)
        time.sleep(0.5)
        stack.start_role(role)
    disturbed.set()


def test_killing_the_worker_and_flushing_redis_loses_nothing(stack: Stack) -> None:
    start_minute = int(time.time() // 60) - 1
    fleet_of_all = build_instances(build_fleet(judged_minutes=40), start_minute=start_minute)
    for instance in fleet_of_all:
        instance.first_minute = max(instance.first_minute, start_minute - 360)
    recorded, disturbed = Recorded(), threading.Event()
    threads = [
        threading.Thread(target=send_all, args=(stack, instance, start_minute, recorded, disturbed))
        for instance in fleet_of_all
    ]
    threads.append(threading.Thread(target=disturb, args=(stack, disturbed)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert disturbed.is_set()

    wait_for("everything is folded", stack.folded, seconds=120)
    assert stack.rows("SELECT sum(calls) FROM version_hour")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(calls) FROM version_minute")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(calls) FROM region_minute")[0][0] == recorded.calls
    assert stack.rows("SELECT sum(windows) FROM process_minute")[0][0] == recorded.windows
    assert stack.rows("SELECT count(*) FROM ingest_poison")[0][0] == 0
    pages = [
        stack.page(f"/p/flow/models/{model}/versions/?range=24h")
        for (model,) in stack.rows("SELECT id FROM model")
    ]
    assert (
        sum(int(count) for page in pages for count in re.findall(r'<data value="(\d+)">', page))
        == recorded.calls
    )
