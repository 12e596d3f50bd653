"""A job that forks from another thread while the agent's thread is held at one named moment; run
with the moment and how often."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import compilewatch

MOMENTS = {
    "idle": "",
    "polling the sources": "compilewatch.sources.registry:InstalledSources.poll",
    "draining": "compilewatch.recording.series_buffer:SeriesBuffer.collect",
    "closing a window": "compilewatch.recording.recorder:Recorder.rotate",
    "folding events": "compilewatch.recording.aggregate:EventLog.rotate",
    "putting a window in line": "compilewatch.export.outbox:Outbox.add",
    "keeping a window on disk": "compilewatch.export.spool.spool:Spool.store",
    "encoding": "compilewatch.wire.codec:encode",
    "describing itself": "compilewatch.identity.identity:identity_refresh",
    "choosing a batch": "compilewatch.export.outbox:Outbox.next_batch",
    "writing a request": "compilewatch.export.sender:request_body",
    "compressing": "compilewatch.wire.codec:deflate",
    "connecting": "connect",
    "sending": "send",
    "reading the answer": "recv_into",
    "decoding the answer": "compilewatch.wire.codec:decode",
    "applying an acknowledgement": "compilewatch.export.outbox:Outbox.acknowledge",
    "letting go of a window on disk": "compilewatch.export.spool.spool:Spool.update_pending",
    "looking for leftovers": "compilewatch.export.spool.recovery:SpoolRecovery.step",
}
"""What the agent's thread is about to run, by module and name, or the method of a socket that it is
about to call."""
CHILD_CALLS = 7
CHILD_SECONDS = 20.0
PARENT = os.getpid()


class Hold:
    """Stops the agent's thread when it comes to the moment, from `arm` until `release`."""

    def __init__(self, moment: str) -> None:
        self._where = MOMENTS[moment]
        self._code = _code(self._where) if ":" in self._where else None
        self._armed = False
        self._reached = threading.Event()
        self._go_on = threading.Event()

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """What the interpreter calls at each call that the agent's thread makes."""
        if not self._armed or os.getpid() != PARENT:
            return
        if (
            frame.f_code is self._code
            if event == "call"
            else event == "c_call" and arg.__name__ == self._where
        ):
            self._armed = False
            self._reached.set()
            self._go_on.wait()

    def arm(self) -> None:
        """Waits until the thread is there; for `idle` it need not be anywhere."""
        if not self._where:
            time.sleep(0.005)
            return
        self._reached.clear()
        self._go_on.clear()
        self._armed = True
        assert self._reached.wait(20), "the agent's thread never came there"

    def release(self) -> None:
        """Lets the thread go on."""
        self._go_on.set()


def _code(where: str) -> Any:
    module, _, path = where.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found.__code__  # type: ignore[attr-defined]


def fork_once(call: Callable[[], None]) -> tuple[int, float]:
    """Forks, has the child make its calls and end; its exit status, and the processor time of its
    first call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(int(CHILD_SECONDS))  # a child that hangs dies of it, and the job says so
        began = time.thread_time()
        call()
        os.write(writer, str(time.thread_time() - began).encode())
        for _ in range(CHILD_CALLS - 1):
            call()
        compilewatch.shutdown()
        while (
            threading.active_count() > 1
        ):  # its thread has said that it is through, and is about to be gone
            time.sleep(0.001)
        os._exit(0)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    first = os.read(reader, 100).decode()
    os.close(reader)
    return status, float(first or "nan")


def open_files() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def main(moment: str, times: int) -> None:
    """Prints what the parent counted and how its children ended."""
    hold = Hold(moment)
    threading.setprofile(hold.profile)
    compilewatch.init(model="m", interval=0.05)
    threading.setprofile(None)
    call = compilewatch.watch(lambda: None, name="forward")
    outcomes: list[tuple[int, float]] = []
    over = threading.Event()

    def forks() -> None:
        try:
            for _ in range(times):
                hold.arm()
                outcomes.append(fork_once(call))
                hold.release()
        finally:
            over.set()

    threading.Thread(target=forks).start()
    calls, descriptors = 0, open_files()
    while not over.is_set():
        call()
        calls += 1
        time.sleep(0.0005)
    compilewatch.shutdown()
    grown = open_files() - descriptors
    statuses = [status for status, _ in outcomes]
    print(
        json.dumps(
            {
                "calls": calls,
                "statuses": statuses,
                "first": [first for _, first in outcomes],
                "grown": grown,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
