"""SIGTERM ends a job at once even in C code, and nothing in the network holds its end up; what it had closed arrives later."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping

import pytest

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FaultProxy
from tests.faults.results import Tell
from tests.faults.size import sized
from tests.flow.stack import wait_for

MARGIN = 10
TERM_SECONDS, SHUTDOWN_SECONDS = 0.05, 1.0


def test_sigterm_ends_a_job_that_is_in_c(line: Line, proxy: FaultProxy, jobs: Jobs, tell: Tell) -> None:
    longest = 0.0
    for _ in range(sized(1, 50)):
        process = jobs.start("--impatient", "--in-c")
        wait_for("the job is in C", lambda one=process: "in C" in jobs.said(one), seconds=60, every=0.02)
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        longest = max(longest, time.monotonic() - began)
    assert longest < TERM_SECONDS * MARGIN
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["lost that were on disk"] == 0
    tell("3", **found, longest_ms=round(longest * 1000))


NETWORKS = {
    "nobody listens": ("", ""),
    "a connection that nobody answers": ("blackhole", ""),
    "an answer that does not come": ("half_open", ""),
    "an answer of a byte at a time": ("slow", ""),
    "a name that does not exist": ("", "http://does-not-exist.invalid:9"),
    "a name whose look-up hangs": ("", "http://localhost:{port}"),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_end_is_held_up_for_a_second_at_most(network: str, line: Line, proxy: FaultProxy, jobs: Jobs, tell: Tell) -> None:
    fault, endpoint = NETWORKS[network]
    endpoint = endpoint.format(port=proxy.port)
    proxy.plan = lambda chance: fault
    proxy.byte_seconds = 1.0
    if network == "nobody listens":
        proxy.down()
    words = ["--slow-names", "30"] if "hangs" in network else []
    longest = 0.0
    for _ in range(sized(1, 20)):
        process = jobs.start("--seconds", "2", *words, endpoint=endpoint)
        assert process.wait(60) == 0
        longest = max(longest, jobs.shutdown_seconds(process))
    assert longest < SHUTDOWN_SECONDS * MARGIN
    if network == "nobody listens":
        proxy.up()
    proxy.calm()
    found: Mapping[str, int] = {"jobs": len(jobs.running)}
    if "invalid" not in endpoint:
        jobs.sweep(endpoint)
        found = line.check(jobs.version, jobs.ours(), jobs.recorded())
        assert found["calls folded"] == found["calls"]
    tell("7, 18" if endpoint else "7", **found, longest_ms=round(longest * 1000))


def test_a_dashboard_that_swallows_everything_has_one_connection_at_a_time(line: Line, proxy: FaultProxy, jobs: Jobs, tell: Tell) -> None:
    proxy.plan = lambda chance: "blackhole"
    process = jobs.start("--impatient", "--seconds", str(sized(9, 60)))
    most = 0
    while process.poll() is None:
        most = max(most, proxy.open_now)
        time.sleep(0.02)
    proxy.calm()
    assert (process.returncode, most) == (0, 1)
    [job] = jobs.ours()
    assert len(job.attempts) >= 1
    longest = max(ended - began for began, ended in job.attempts)
    assert longest < 8.0 * MARGIN
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["calls folded"] == found["calls"]
    tell("12", **found, longest_request_s=round(longest, 2))
