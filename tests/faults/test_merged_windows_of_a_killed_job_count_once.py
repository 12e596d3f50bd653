"""Merged windows of a job that dies after sending them, before it records their arrival on disk:
they count once."""

from __future__ import annotations

from pathlib import Path

from tests.agent.export.spool.files import on_disk
from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import wait_for

MEMORY = 20_000
"""Bytes: about twenty windows."""
WINDOWS = 60


def test_the_source_windows_are_not_sent_again(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    for _ in range(sized(1, 20)):
        proxy.plan = lambda chance: "refuse"
        # The first response is for the attempt before the merge.
        process = jobs.start(
            "--impatient", "--interval", "0.05", "--memory", str(MEMORY), "--crash", "answered:2"
        )
        wait_for(
            "many windows are waiting",
            lambda: any(len(on_disk(path)) > WINDOWS for path in files(jobs)),
            seconds=60,
            every=0.05,
        )
        proxy.calm()
        assert process.wait(60) == -9, jobs.output(process)
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert (found["doubled"], found["lost that were on disk"]) == (0, 0)
    add_result("1", **found)


def files(jobs: Jobs) -> list[Path]:
    return list(jobs.spools.rglob("*.spool"))
