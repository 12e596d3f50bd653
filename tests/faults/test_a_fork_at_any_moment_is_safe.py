"""At every moment of the agent's thread, another thread can fork: the child records as its own
instance and ends, and nothing is counted twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard, assert_sent_once
from tests.faults import forking_job
from tests.faults.forking_job import CHILD_CALLS, MOMENTS
from tests.faults.results import AddResult
from tests.faults.size import sized

FIRST_CALL_SECONDS, MARGIN = 0.001, 10
"""Processor time of a child's first call, including the start of its agent thread."""
JOB = Path(forking_job.__file__)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_child_forked_while_the_agent_is(
    moment: str, dashboard: Dashboard, add_result: AddResult
) -> None:
    times = sized(3, 200)
    done = run(JOB, moment, str(times), limit=600.0, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    calls: dict[str, int] = {}
    for (instance, _, _), report in dashboard.acked.items():
        calls[instance] = calls.get(instance, 0) + sum(
            region["calls"] for region in report.get("regions", [])
        )
    difference = sum(calls.values()) - CHILD_CALLS * times - found["calls"]
    first = sorted(found["first"])
    add_result(
        "5",
        runs=times,
        doubled=max(0, difference),
        calls_lost=max(0, -difference),
        longest_median_first_call_us=round(first[times // 2] * 1e6),
    )
    assert found["statuses"] == [0] * times
    assert found["grown"] <= 0
    assert first[times // 2] < FIRST_CALL_SECONDS * MARGIN
    assert sorted(calls.values()) == sorted([CHILD_CALLS] * times + [found["calls"]])
    assert len({request["instance"]["pid"] for request in dashboard.requests}) == times + 1
    assert_sent_once(dashboard)
