"""Syncing fails with an input/output error: the dashboard acknowledges no further report and the
process ends. After a restart, all acknowledged reports are stored exactly once."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import Stack, wait_for
from tests.machine import need

pytestmark = pytest.mark.timeout(900)
SYNCS = "fsync,fdatasync"


@contextmanager
def failing_syncs(process: int, log: Path) -> Iterator[None]:
    """From now on every sync of a process fails as on a broken disk."""
    need("strace")
    words = [
        "strace",
        "-f",
        "-p",
        str(process),
        "-e",
        f"trace={SYNCS}",
        "-e",
        f"inject={SYNCS}:error=EIO",
    ]
    with log.open("w") as trace, subprocess.Popen(words, stdout=trace, stderr=trace) as tracer:
        try:
            wait_for(
                "strace is attached",
                lambda: "attached" in log.read_text() or tracer.poll() is not None,
                seconds=60,
                every=0.05,
            )
            assert "attached" in log.read_text(), (
                f"strace must be allowed to trace: {log.read_text()}"
            )
            yield
        finally:
            tracer.terminate()


def test_no_report_is_acknowledged_and_the_process_ends(
    tmp_path: Path, add_result: AddResult
) -> None:
    stack = Stack(database="sqlite", folder=tmp_path, outbound="127.0.0.1:9")
    try:
        stack.start(channel="http://127.0.0.1:9/none")
        with Prober(stack, "eio") as prober:
            prober.wait_for_ack()
            for _ in range(sized(1, 20)):
                server = stack.processes["everything"]
                with failing_syncs(server.pid, tmp_path / "strace.log"):
                    began = time.monotonic()
                    code = server.wait(60)
                assert code == 74, stack.logs()
                assert {answer.status for answer in prober.since(began)} <= {0, 503}
                assert "a write to disk was lost" in stack.logs()
                stack.start_role("everything")
                prober.wait_for_ack()
        prober.check()
        add_result(
            "29", acknowledged=prober.acked, ended_after_s=round(time.monotonic() - began, 2)
        )
    finally:
        stack.close()
