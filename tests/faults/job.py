"""A job with the agent and a ledger: `python -m tests.faults.job LEDGER OPTIONS`.

Crash points are defined here and not in the agent: the test process wraps the functions at which it
must die. No environment variable can make the product die."""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import signal
import socket
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
from compilewatch import agent, worker
from compilewatch.export import sender, transport
from compilewatch.export.http import connection
from compilewatch.export.outbox import Entry, Outbox
from compilewatch.export.spool import spool
from compilewatch.recording import recorder
from compilewatch.wire.messages import Compile, Report

from tests.faults.ledger import Ledger

COMPILATIONS = itertools.count(1)
CRASH_POINTS = ("closed", "spooled", "connected", "sent", "answered", "forked")


def options() -> argparse.Namespace:
    """The options of the job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--interval", type=float, default=0.2)
    parser.add_argument(
        "--pause", type=float, default=0.002, help="seconds between two bursts of calls"
    )
    parser.add_argument(
        "--crash", default="", help="POINT:N: die at the point as by SIGKILL, at the N-th pass"
    )
    parser.add_argument(
        "--impatient",
        action="store_true",
        help="wait a twentieth of the usual time after a failure",
    )
    parser.add_argument(
        "--limits",
        type=float,
        default=1.0,
        help="fraction of the usual time limit of a request",
    )
    parser.add_argument(
        "--slow-names", type=float, default=0.0, help="seconds that every DNS lookup hangs"
    )
    parser.add_argument("--memory", type=int, default=0, help="maximum bytes of waiting windows")
    parser.add_argument(
        "--in-c", action="store_true", help="keep the main thread in one C function"
    )
    parser.add_argument("--forks", type=int, default=0)
    parser.add_argument(
        "--clock", type=float, default=0.0, help="clock error of the host in seconds"
    )
    parser.add_argument(
        "--timed", action="store_true", help="print the duration of each call at the end"
    )
    parser.add_argument(
        "--fails", default="", help="rank that ends after three seconds with exit code 7"
    )
    parser.add_argument("--deaf", default="", help="rank that ignores SIGTERM")
    parser.add_argument(
        "--trouble",
        type=float,
        default=0.0,
        help="share of calls that raise, and of bursts that compile",
    )
    parser.add_argument(
        "--sweep", type=Path, help="run until every file that is now in the folder is gone"
    )
    return parser.parse_args()


def main() -> None:
    """Records until the time is over; prints the duration of the shutdown in seconds."""
    given = options()
    rank = os.environ.get("RANK", "")
    ledger = Ledger(Path(str(given.ledger).replace("{rank}", rank)))
    observe(ledger)
    if given.clock:
        wrong_clock(given.clock)
    if rank and rank == given.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if given.crash:
        crash_at(*given.crash.split(":"))
    if given.impatient:
        sender.FIRST_WAIT, sender.LONGEST_WAIT, sender.LEAST_RETRY_AFTER, sender.REFUSED_WAIT = (
            0.1,
            3.0,
            0.05,
            0.1,
        )
        sender.MOST_RETRY_AFTER = worker.TICK_SECONDS = spool.RETRY_SECONDS = 0.2
    if given.memory:
        Outbox.__init__.__defaults__ = (given.memory,)
    for limit in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
        setattr(connection, limit, getattr(connection, limit) * given.limits)
    if given.slow_names:
        slow_names(given.slow_names)
    assert compilewatch.init(model="faults", version=given.version, interval=given.interval)
    if rank and rank == given.fails:
        given.seconds = 3.0
    took = work(ledger, given)
    if rank and rank == given.fails:
        raise SystemExit(7)
    began = time.monotonic()
    compilewatch.shutdown()
    print(
        json.dumps(
            {
                "shutdown": time.monotonic() - began,
                **({"took": sorted(took)} if given.timed else {}),
            }
        ),
        flush=True,
    )


def work(ledger: Ledger, given: argparse.Namespace) -> list[float]:
    """Calls a watched function in small bursts, with a ledger line before and after each burst;
    returns the duration of each call if `timed` is set."""
    took: list[float] = []
    random.seed(str(given.ledger))
    call = compilewatch.watch(step, name="step")
    end = time.monotonic() + given.seconds
    left = set(given.sweep.rglob("*.spool")) if given.sweep else set()
    while time.monotonic() < end and (not given.sweep or left & set(given.sweep.rglob("*.spool"))):
        plan = [random.random() < given.trouble for _ in range(random.randint(1, 20))]
        ledger.write("begin", calls=len(plan), errors=sum(plan))
        for fails in plan:
            began = time.perf_counter() if given.timed else 0.0
            try:  # noqa: SIM105 - a context manager would count towards the time of the call
                call(fails)
            except Failure:
                pass
            if given.timed:
                took.append(time.perf_counter() - began)
        ledger.write("done", calls=len(plan), errors=sum(plan))
        if random.random() < given.trouble:
            compile_once(ledger)
        if given.forks > 0:
            given.forks -= 1
            fork()
        if given.in_c:
            stay_in_c()
        time.sleep(given.pause)
    return took


class Failure(Exception):
    """Raised by a watched call that fails on purpose."""


def step(fails: bool) -> None:
    """The watched function."""
    if fails:
        raise Failure


def compile_once(ledger: Ledger) -> None:
    """Reports a compilation to the agent like its sources do, with a ledger line before and
    after."""
    name = f"{next(COMPILATIONS)}/0"
    ledger.write("compile", id=name)
    recorder.RECORDER.record_compile(
        Compile(time.time(), name, "first", "ok", frame="step", seconds={"total": 0.001})
    )
    ledger.write("compiled", id=name)


def fork() -> None:
    """Forks a child that ends at once: at the crash point, if there is one."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def stay_in_c() -> None:
    """One call into C that takes many seconds and blocks signal handlers."""
    time.sleep(0.5)
    print("in C", flush=True)
    zlib.compress(random.Random(0).randbytes(1 << 20) * 500, 9)


def wrong_clock(seconds: float) -> None:
    """Sets the host's clock apart from the dashboard's clock."""
    real = time.time
    time.time = lambda: real() + seconds


def slow_names(seconds: float) -> None:
    """Makes DNS lookups block outside of Python, like an unresponsive resolver."""
    real = socket.getaddrinfo

    def hanging(*given: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return real(*given, **named)

    socket.getaddrinfo = hanging


def instance() -> str:
    """The ID of the current instance of this process."""
    running = agent.AGENT.worker
    assert running is not None and running.reporter is not None
    return running.reporter.identity.id


def observe(ledger: Ledger) -> None:
    """Records windows before other code sees them, and acknowledgements before the agent applies
    them."""
    close, keep, send = recorder.Recorder.rotate, spool.Spool.store, transport.HttpTransport.send

    def closing(self: recorder.Recorder, *given: Any) -> Report:
        report = close(self, *given)
        ledger.window(instance(), report)
        return report

    def keeping(self: spool.Spool, closed: Entry, *given: Any) -> None:
        errors = self.errors
        keep(self, closed, *given)
        if self.errors == errors:
            ledger.write("kept", instance=instance(), number=closed.seq[0])

    def sending(self: transport.HttpTransport, body: bytes) -> transport.Answer:
        began = time.time()
        try:
            answer = send(self, body)
        finally:
            ledger.write("attempt", began=began)
        if answer.ack is not None:
            ledger.write(
                "acked",
                instance=json.loads(body)["instance"]["id"],
                ranges=acknowledged(body, answer),
            )
        return answer

    recorder.Recorder.rotate = closing  # type: ignore[method-assign]
    spool.Spool.store = keeping  # type: ignore[method-assign]
    transport.HttpTransport.send = sending  # type: ignore[method-assign]


def acknowledged(body: bytes, answer: transport.Answer) -> list[list[int]]:
    """Acknowledged ranges of the sent windows; a response may name other windows."""
    assert answer.ack is not None
    sent = [report["seq"] for report in json.loads(body)["reports"]]
    return [
        seq
        for seq in sent
        if any(first <= seq[0] and seq[1] <= last for first, last in answer.ack.acked)
    ]


def crash_at(point: str, times: str) -> None:
    """Dies after the named step, when it runs for the n-th time."""
    left = [int(times)]

    def passed() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(real)
        def wrapped(*given: Any, **named: Any) -> Any:
            result = real(*given, **named)
            passed()
            return result

        setattr(owner, name, wrapped)

    if point == "forked":
        os.register_at_fork(after_in_child=passed)
        return
    places: dict[str, tuple[Any, str]] = {
        "closed": (recorder.Recorder, "rotate"),
        "spooled": (spool.Spool, "store"),
        "connected": (connection, "_dial"),
        "sent": (connection.BoundedSocket, "write"),
        "answered": (transport.HttpTransport, "send"),
    }
    wrap(*places[point])


if __name__ == "__main__":
    main()
