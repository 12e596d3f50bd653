"""Ctrl-C reaches the one process of the embedded mode twice, from the terminal and from make: the
process still ends."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.flow.stack import Stack, wait_for


def catches(process: int, number: signal.Signals) -> bool:
    """True if a signal goes to a handler of the process."""
    status = Path(f"/proc/{process}/status").read_text()
    [caught] = re.findall(r"^SigCgt:\s+(\w+)$", status, re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_burst_of_signals_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    stack = Stack(database="sqlite", folder=tmp_path, outbound="127.0.0.1:9")
    stack.start(channel="http://127.0.0.1:9/none")
    server = stack.processes["everything"]
    wait_for(
        "its signal handlers are installed",
        lambda: catches(server.pid, signal.SIGTERM),
        seconds=60,
        every=0.05,
    )

    def burst() -> None:
        while time.monotonic() < until:
            os.kill(
                server.pid, number
            )  # it is a zombie at most, because its exit status is read only after the burst

    until = time.monotonic() + 1
    senders = [threading.Thread(target=burst) for _ in range(2)]
    try:
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert server.wait(60) == 0
    finally:
        stack.close()
