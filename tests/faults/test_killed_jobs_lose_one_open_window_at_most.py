"""Jobs killed at any moment lose only their open window: every closed window arrives exactly
once."""

from __future__ import annotations

import random

import pytest

from tests.faults.job import CRASH_POINTS
from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FAULTS, FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import sized

JOBS = 200
A_BATCH = 25
SLOW = ("blackhole", "half_open", "half_open_after_forwarding", "slow")


def often(chance: random.Random) -> str:
    """A fault for every third request; faults that take seconds are rarer."""
    if chance.random() < 0.66:
        return ""
    return chance.choice([name for name in FAULTS if name not in SLOW or chance.random() < 0.1])


@pytest.mark.parametrize("batch", range(sized(1, JOBS // A_BATCH)))
def test_with_a_spool_every_closed_window_arrives(
    batch: int, line: Line, proxy: FaultProxy, jobs: Jobs, seed: int, add_result: AddResult
) -> None:
    proxy.plan = often
    jobs.kill_at_random(sized(6, A_BATCH), 3, random.Random(seed), "--impatient")
    proxy.calm()
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["lost that were on disk"] == 0
    for job in jobs.ours():
        # A window that was closed but not yet on disk when the job died counts as open.
        assert all(
            len(windows) - len(job.kept.get(instance, ())) <= 1
            for instance, windows in job.windows.items()
        )
        assert job.done_before_last_close <= job.closed <= job.begun
    add_result(
        "1",
        **found,
        calls_in_open_windows=found["calls"] - found["calls folded"],
        faults=sum(proxy.counts.values()),
    )


@pytest.mark.parametrize("batch", range(sized(1, JOBS // A_BATCH)))
def test_without_a_spool_only_unacknowledged_windows_are_lost_and_gaps_are_shown(
    batch: int, line: Line, proxy: FaultProxy, jobs: Jobs, seed: int, add_result: AddResult
) -> None:
    proxy.plan = often
    jobs.kill_at_random(
        sized(4, A_BATCH), 3, random.Random(seed), "--impatient", spool="/proc/nowhere"
    )
    proxy.calm()
    found = line.check(jobs.version, jobs.recorded())
    add_result("2", **found)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_dying_at_a_crash_point_counts_nothing_twice(
    point: str, line: Line, proxy: FaultProxy, jobs: Jobs, seed: int, add_result: AddResult
) -> None:
    chance = random.Random(seed)
    for _ in range(sized(1, 20)):
        crash = f"{point}:{chance.randint(1, 6)}"
        process = jobs.start(
            "--impatient",
            "--crash",
            crash,
            "--forks",
            "10",
            "--seconds",
            "1" if point == "forked" else "60",
        )
        code = process.wait(120)
        assert code == (0 if point == "forked" else -9), jobs.output(process)
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["lost that were on disk"] == 0
    assert found["windows lost"] <= (len(jobs.ours()) if point == "closed" else 0)
    add_result("1", **found, died_at_a_crash_point=len(jobs.ours()))
