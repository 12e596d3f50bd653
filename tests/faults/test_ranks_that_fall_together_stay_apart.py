"""One rank of a torchrun job fails, the others receive SIGTERM, and a rank that ignores SIGTERM
receives SIGKILL: each rank's windows count as its own."""

from __future__ import annotations

import time

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import sized

RANKS, GRACE_SECONDS = sized(3, 8), sized(2, 30)
LAUNCHER = [
    "-m", "torch.distributed.run", "--standalone", "--shutdown-timeout", str(GRACE_SECONDS), "--nproc-per-node", str(RANKS),
]  # fmt: skip


def test_one_rank_fails_and_one_ignores_sigterm(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    began = time.monotonic()
    launcher = jobs.start("--impatient", "--fails", "1", "--deaf", "0", through=LAUNCHER)
    assert launcher.wait(170) == 1
    output = jobs.output(launcher)
    assert "exitcode  : 7" in output and "compilewatch:" not in output
    assert (
        time.monotonic() - began > GRACE_SECONDS
    )  # torchrun waited for the rank that ignores SIGTERM
    jobs.sweep()
    ranks = jobs.ours()
    found = line.check(jobs.version, ranks, jobs.recorded())
    add_result("4", **found)
    instances = [instance for rank in ranks for instance in rank.windows]
    assert len(ranks) == len(instances) == len(set(instances)) == RANKS
    assert found["lost that were on disk"] == 0
    # A window that was closed but not yet on disk when the rank died counts as open.
    assert all(
        len(windows) - len(rank.kept[instance]) <= 1
        for rank in ranks
        for instance, windows in rank.windows.items()
    )
