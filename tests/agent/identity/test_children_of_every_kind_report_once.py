"""Children created in any way that Python offers are separate instances; their calls count once, no
child hangs, and no child costs a descriptor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent import families
from tests.agent.conftest import KEY
from tests.agent.families import CALLS
from tests.agent.programs import run
from tests.agent.server import Dashboard
from tests.faults.results import AddResult
from tests.faults.size import sized

JOB = Path(families.__file__)
SILENT = ("fork-exit", "programs")
"""Children that end without a report, or never had an agent."""
SWEEP = """
import sys, time
from pathlib import Path
import compilewatch
from compilewatch import worker
worker.TICK_SECONDS = 0.01
left = list(Path(sys.argv[1]).rglob("*.spool"))
compilewatch.init(model="m", interval=0.05)
while any(path.exists() for path in left):
    time.sleep(0.01)
"""
"""The next process of the project sends the windows that a child on a busy machine could not send
within a second of its end."""


@pytest.mark.parametrize("kind", families.KINDS)
def test_children_of_each_kind_report_once(
    kind: str, dashboard: Dashboard, tmp_path: Path, add_result: AddResult
) -> None:
    count = sized(3, 64)
    done = run(
        JOB,
        kind,
        str(count),
        limit=600.0,
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
        SPOOL=str(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 10
    left = len(list(tmp_path.rglob("*.spool")))
    if left:
        swept = run(
            SWEEP, str(tmp_path), ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(tmp_path)
        )
        assert (swept.returncode, swept.stderr) == (0, "")
    expected = 0 if kind in SILENT else 3 if kind == "fork-nested" else count
    calls = calls_of(dashboard)
    assert sorted(calls.values()) == [CALLS] * expected + [2 * CALLS]
    assert (
        len(
            {
                request["instance"]["pid"]
                for request in dashboard.requests
                if request["instance"]["id"] in calls
            }
        )
        == expected + 1
    )
    add_result("6", runs=expected, left_on_disk=left)


def calls_of(dashboard: Dashboard) -> dict[str, int]:
    """Calls by instance, for the instances that made calls."""
    counts: dict[str, int] = {}
    for (instance, _, _), report in dashboard.acked.items():
        for region in report.get("regions", []):
            counts[instance] = counts.get(instance, 0) + region["calls"]
    return counts
