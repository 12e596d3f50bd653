"""A job that forks on one thread while the agent's thread is held at a named moment; the arguments
are the moment and the number of forks."""

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
    "queueing a window": "compilewatch.export.outbox:Outbox.add",
    "writing a window to disk": "compilewatch.export.spool.spool:Spool.store",
    "encoding": "compilewatch.wire.codec:encode",
    "describing itself": "compilewatch.identity.identity:identity_refresh",
    "choosing a batch": "compilewatch.export.outbox:Outbox.next_batch",
    "writing a request": "compilewatch.export.sender:request_body",
    "compressing": "compilewatch.wire.codec:deflate",
    "connecting": "connect",
    "sending": "send",
    "reading the response": "recv_into",
    "decoding the response": "compilewatch.wire.codec:decode",
    "applying an acknowledgement": "compilewatch.export.outbox:Outbox.acknowledge",
    "removing a window from disk": "compilewatch.export.spool.spool:Spool.update_pending",
    "looking for leftovers": "compilewatch.export.spool.recovery:SpoolRecovery.step",
}
"""The next function of the agent's thread, by module and name, or the next method of its socket."""
CHILD_CALLS = 7
CHILD_SECONDS = 20.0
PARENT = os.getpid()


class Hold:
    """Stops the agent's thread at the moment, from `arm` until `release`."""

    def __init__(self, moment: str) -> None:
        self._where = MOMENTS[moment]
        self._code = _code(self._where) if ":" in self._where else None
        self._armed = False
        self._reached = threading.Event()
        self._go_on = threading.Event()

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """Profile function: runs at each call of the agent's thread."""
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
        """Waits until the thread is at the moment; for `idle`, any place is accepted."""
        if not self._where:
            time.sleep(0.005)
            return
        self._reached.clear()
        self._go_on.clear()
        self._armed = True
        assert self._reached.wait(20), "the agent's thread never reached the moment"

    def release(self) -> None:
        """Lets the thread continue."""
        self._go_on.set()


def _code(where: str) -> Any:
    module, _, path = where.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found.__code__  # type: ignore[attr-defined]


def fork_once(call: Callable[[], None]) -> tuple[int, float]:
    """Forks a child that makes its calls and ends; returns its exit status, and the processor time
    of its first call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(int(CHILD_SECONDS))  # kills a hanging child, and the job reports its status
        began = time.thread_time()
        call()
        os.write(writer, str(time.thread_time() - began).encode())
        for _ in range(CHILD_CALLS - 1):
            call()
        compilewatch.shutdown()
        while threading.active_count() > 1:  # the agent's thread has finished and ends soon
            time.sleep(0.001)
        os._exit(0)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    first = os.read(reader, 100).decode()
    os.close(reader)
    return status, float(first or "nan")


def open_files() -> int:
    """Number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def main(moment: str, times: int) -> None:
    """Prints the calls of the parent and the exit status of each child."""
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
