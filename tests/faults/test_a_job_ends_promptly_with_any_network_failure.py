"""SIGTERM ends a job soon, even in C code, and the network does not delay its end; closed windows
arrive later."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import pytest

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.proxy import FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import FULL, sized
from tests.flow.stack import wait_for

MARGIN = 10
BARE = (
    "import random, zlib; print('in C', flush=True); "
    "zlib.compress(random.Random(0).randbytes(1 << 20) * 500, 9)"
)
"""The same work in C, without an agent."""
TERM_SECONDS, SHUTDOWN_SECONDS = 1.2, 1.0


def test_sigterm_ends_a_job_that_is_in_c(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    ours, theirs = [], []
    for _ in range(sized(1, 50)):
        process, bare = (
            jobs.start("--impatient", "--in-c"),
            subprocess.Popen([sys.executable, "-c", BARE], stdout=subprocess.PIPE),
        )
        assert bare.stdout is not None and bare.stdout.readline() == b"in C\n"
        wait_for(
            "the job is in C",
            lambda one=process: "in C" in jobs.output(one),
            seconds=60,
            every=0.02,
        )
        time.sleep(0.3)
        assert not any(signal_sets(process.pid)[name] for name in ("SigBlk", "SigIgn"))
        for one, took in ((bare, theirs), (process, ours)):
            began = time.monotonic()
            one.send_signal(signal.SIGTERM)
            assert one.wait(60) == -signal.SIGTERM
            took.append(time.monotonic() - began)
    assert median(ours) < (median(theirs) + TERM_SECONDS) * MARGIN
    jobs.sweep()
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["lost that were on disk"] == 0
    add_result(
        "3",
        **found,
        longest_ms=round(max(ours) * 1000),
        longest_ms_of_a_bare_process=round(max(theirs) * 1000),
    )


def signal_sets(pid: int) -> dict[str, bool]:
    """True for each state of SIGTERM (blocked, ignored, caught by a handler), from /proc."""
    words = (line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        name: bool(int(value, 16) & 1 << signal.SIGTERM - 1)
        for name, value in words
        if name.startswith("Sig") and name != "SigQ"
    }


NETWORKS = {
    "no listener": ("", ""),
    "a connection without a response": ("blackhole", ""),
    "a response that never comes": ("half_open", ""),
    "a response one byte at a time": ("slow", ""),
    "a host name that does not exist": ("", "http://does-not-exist.invalid:9"),
    "a DNS lookup that hangs": ("", "http://localhost:{port}"),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_shutdown_takes_at_most_a_second(
    network: str, line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    fault, endpoint = NETWORKS[network]
    endpoint = endpoint.format(port=proxy.port)
    proxy.plan = lambda chance: fault
    proxy.byte_seconds = 1.0
    if network == "no listener":
        proxy.down()
    words = ["--slow-names", "30"] if "hangs" in network else []
    longest = 0.0
    for _ in range(sized(1, 20)):
        process = jobs.start("--seconds", "2" if FULL else "1", *words, endpoint=endpoint)
        assert process.wait(60) == 0
        longest = max(longest, jobs.shutdown_seconds(process))
    assert longest < SHUTDOWN_SECONDS * MARGIN
    if network == "no listener":
        proxy.up()
    proxy.calm()
    found: Mapping[str, int] = {"jobs": len(jobs.running)}
    if "invalid" not in endpoint:
        jobs.sweep(endpoint)
        found = line.check(jobs.version, jobs.ours(), jobs.recorded())
        assert found["calls folded"] == found["calls"]
    add_result("7, 18" if endpoint else "7", **found, longest_ms=round(longest * 1000))


def test_a_dashboard_that_never_responds_has_one_connection_at_a_time(
    line: Line, proxy: FaultProxy, jobs: Jobs, add_result: AddResult
) -> None:
    proxy.plan = lambda chance: "blackhole"
    process = jobs.start(
        "--impatient", "--seconds", str(sized(3, 60)), "--limits", "1" if FULL else "0.2"
    )
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
    add_result("12", **found, longest_request_s=round(longest, 2))
