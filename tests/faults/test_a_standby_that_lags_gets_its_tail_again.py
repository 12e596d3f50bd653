"""The database fails over to an asynchronous standby without the last seconds: running agents send
the missing windows again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.books import instances_check
from tests.faults.cluster import Cluster
from tests.faults.jobs import Jobs
from tests.faults.ledger import acks_read
from tests.faults.line import Holdings
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import Stack, wait_for

pytestmark = pytest.mark.timeout(900)
LAG = 25
"""Number of windows of 0.2 s that the standby does not receive: 5 s."""
MOST_ANSWERS = 20
"""Within two intervals of 10 s, an agent with waiting windows sends twenty requests, one per
second."""


@pytest.fixture
def primary() -> Iterator[Cluster]:
    """The first primary."""
    running = Cluster()
    running.start()
    yield running
    running.close()


@pytest.fixture
def standby() -> Iterator[Cluster]:
    """The standby that takes over."""
    running = Cluster(empty=True)
    yield running
    running.close()


@pytest.fixture
def stack(primary: Cluster, tmp_path: Path) -> Iterator[Stack]:
    """A dashboard of a web process and a worker."""
    folder = tmp_path / "stack"
    folder.mkdir()
    running = Stack(
        database="postgresql", folder=folder, outbound="127.0.0.1:9", server=primary.address
    )
    try:
        running.manage("migrate", "--verbosity=0")
        running.key = re.search(r"cw_ing_\w+", running.manage("setup_project", "--name", "Flow"))[0]  # type: ignore[index]
        start(running)
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        for role in list(running.processes):
            running.kill(role)


def start(stack: Stack) -> None:
    for role in ("web", "worker"):
        stack.start_role(role)
    wait_for("the web process responds", lambda: stack.status("/healthz") == 200, seconds=300)


def fail_over(stack: Stack, primary: Cluster, standby: Cluster) -> None:
    """The primary fails permanently, and the dashboard's processes are redirected to the
    standby."""
    primary.kill()
    for role in ("web", "worker"):
        stack.kill(role)
    standby.promote()
    stack.server = standby.address
    address = stack.environment["COMPILEWATCH_DATABASE_URL"]
    stack.environment["COMPILEWATCH_DATABASE_URL"] = address.replace(
        f":{primary.port}/", f":{standby.port}/"
    )


def grown(holdings: Holdings, before: dict[str, set[int]], instances: int, windows: int) -> bool:
    """True if each instance has this number of windows more than before."""
    now = numbers(holdings)
    return len(now) == instances and all(
        len(held) >= len(before.get(instance, ())) + windows for instance, held in now.items()
    )


def numbers(holdings: Holdings) -> dict[str, set[int]]:
    return {instance: held.numbers for instance, held in holdings.senders().items()}


def answers_until(ledger: Path, lost: set[int], earlier: int) -> int:
    """Number of later responses until every lost number had been acknowledged once more."""
    missing = set(lost)
    for count, acked in enumerate(acks_read(ledger)[earlier:], start=1):
        missing -= acked
        if not missing:
            return count
    raise AssertionError(f"never acknowledged again: {missing}")


def test_the_failover(
    stack: Stack, primary: Cluster, standby: Cluster, tmp_path: Path, add_result: AddResult
) -> None:
    holdings, jobs = (
        Holdings(stack),
        Jobs(tmp_path, f"http://127.0.0.1:{stack.port}", stack.key, "failed-over"),
    )
    running = [jobs.start("--impatient", "--seconds", "1200") for _ in range(sized(2, 8))]
    try:
        wait_for("the jobs report", lambda: grown(holdings, {}, len(running), 3), seconds=300)
        standby.follow(primary)
        standby.receive_no_more()
        before = numbers(holdings)
        wait_for(
            "the jobs report more", lambda: grown(holdings, before, len(running), LAG), seconds=300
        )
        fail_over(stack, primary, standby)
        answered = {path: len(acks_read(path)) for path in sorted(tmp_path.glob("*.ledger"))}
        promoted = numbers(holdings)
        lost = {
            instance: acked - promoted.get(instance, set())
            for job in jobs.recorded()
            for instance, acked in job.acked.items()
        }
        # The last responses may not have reached their agents.
        assert len(lost) == len(running) and all(len(gone) >= LAG // 2 for gone in lost.values())
        start(stack)
        began = time.monotonic()
        wait_for(
            "all lost windows are stored again",
            lambda: all(gone <= numbers(holdings)[name] for name, gone in lost.items()),
            seconds=300,
        )
        took = time.monotonic() - began
    finally:
        jobs.end()
    needed = [
        answers_until(path, gone, answered[path])
        for path, gone in zip(answered, lost.values(), strict=True)
    ]
    assert max(needed) <= MOST_ANSWERS
    jobs.sweep()
    found = holdings.check(jobs.version, jobs.ours(), jobs.recorded())
    instances_check(stack, holdings, jobs.ours())
    assert found["lost that were on disk"] == found["shown missing"] == 0
    add_result(
        "26",
        **found,
        lost_by_the_standby=sum(map(len, lost.values())),
        most_answers_needed=max(needed),
        longest_restored_s=round(took, 1),
    )
