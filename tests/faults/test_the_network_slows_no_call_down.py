"""A watched call never waits for the network: its duration is the same under every network
fault."""

from __future__ import annotations

import pytest

from tests.faults.jobs import Jobs
from tests.faults.proxy import FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import sized

FAULTS = {
    "no fault": "",
    "a blackhole": "blackhole",
    "half open": "half_open",
    "one byte at a time": "slow",
}
MOST_SECONDS = 0.05
"""A call costs less than a microsecond; a call that waits for the network would take seconds."""


@pytest.mark.parametrize("network", FAULTS)
def test_calls_during(network: str, proxy: FaultProxy, jobs: Jobs, add_result: AddResult) -> None:
    proxy.plan = lambda chance: FAULTS[network]
    proxy.byte_seconds = 1.0
    process = jobs.start("--impatient", "--timed", "--seconds", str(sized(2, 60)))
    assert process.wait(170) == 0
    took = jobs.call_seconds(process)
    assert sum(proxy.counts.values()) > 0
    p999 = took[int(len(took) * 0.999)]
    add_result("12", runs=1, **{f"p99.9 us, {network}": round(p999 * 1e6, 1)})
    assert p999 < MOST_SECONDS
