"""For every fault between an agent and the dashboard, each recorded call is counted once."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FAULTS, FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import FULL, sized

ROWS = {
    "half_open": "12",
    "blackhole": "12",
    "slow": "12",
    "drop_the_answer": "13",
    "replay": "14",
    "reorder": "14",
    "busy": "15",
}
TAKES_LONG = ("blackhole", "half_open", "half_open_after_forwarding")


def first(count: int, name: str) -> Callable[[random.Random], str]:
    """This fault `count` times, then none."""
    left = [count]

    def plan(chance: random.Random) -> str:
        left[0] -= 1
        return name if left[0] >= 0 else ""

    return plan


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(
    fault: str, line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    proxy.plan = first(1 if fault in TAKES_LONG else sized(3, 30), fault)
    seconds, limits = (
        (("8", "1") if FULL else ("2", "0.2"))
        if fault in TAKES_LONG
        else (("40", "1") if FULL else ("1.2", "1"))
    )
    process = jobs.start("--impatient", "--seconds", seconds, "--limits", limits)
    assert process.wait(300) == 0
    jobs.shutdown_seconds(process)  # the job printed nothing else
    proxy.calm()
    if list(jobs.spools.rglob("*.spool")):
        jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["windows lost"] == 0
    assert found["calls folded"] == found["calls"]
    assert proxy.counts[fault] > 0
    add_result(ROWS.get(fault, "16, 17"), **found, met=proxy.counts[fault])


def test_half_of_all_responses_are_lost_after_the_reports_are_stored(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    proxy.plan = lambda chance: "drop_the_answer" if chance.random() < 0.5 else ""
    running = [
        jobs.start("--impatient", "--seconds", str(sized(3, 60))) for _ in range(sized(2, 8))
    ]
    assert [process.wait(300) for process in running] == [0] * len(running)
    proxy.calm()
    if list(jobs.spools.rglob("*.spool")):
        jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["calls folded"] == found["calls"]
    add_result("13", **found, dropped=proxy.counts["drop_the_answer"])


def test_everything_at_once(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    proxy.plan = lambda chance: chance.choice(
        [*(name for name in FAULTS if name not in TAKES_LONG), "", ""]
    )
    running = [
        jobs.start("--impatient", "--seconds", str(sized(3, 120))) for _ in range(sized(2, 8))
    ]
    assert [process.wait(600) for process in running] == [0] * len(running)
    proxy.calm()
    if list(jobs.spools.rglob("*.spool")):
        jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["calls folded"] == found["calls"]
    add_result(
        "12, 13, 14, 15, 16, 17",
        **found,
        faults=sum(proxy.counts.values()) - proxy.counts.get("clean", 0),
    )
