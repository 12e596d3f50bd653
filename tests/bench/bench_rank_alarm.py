"""Time from a compilation on a single rank to the alert: `python -m tests.bench.bench_rank_alarm
[--runs 3]`, about a minute per run.

The full stack runs as separate processes (web, worker, PostgreSQL, Redis). Four simulated
ranks report every 10 s, two and a half seconds apart. One rank recompiles a frame. The benchmark
measures the time until the alert is open in the database, both from the end of that compilation and
from the report that confirmed the divergence: the first report of the last rank whose window ends
at least two seconds after the compilation."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Compile, Identity, Region, Report, Request
from compilewatch.wire.sketch import Sketch

import tests.environment  # noqa: F401  # selects the Redis
from tests.bench.table import Row, show
from tests.dashboard.requests import instance_id
from tests.flow.stack import Stack, answer_of, wait_for

GOAL = 20.0
RANKS, EVERY, SLACK = 4, 10.0, 2.0
FIRST = Compile(
    at=0.0,
    id="0/0",
    kind="first",
    outcome="ok",
    frame="step",
    file="train.py",
    line=8,
    seconds={"total": 4.0},
)


@dataclass(frozen=True)
class Delay:
    """One run, in seconds."""

    from_compilation: float
    from_report: float


class Job:
    """Ranks of one version, each with its own window phase."""

    def __init__(self, stack: Stack, run: int) -> None:
        self._stack, self._began = stack, time.time()
        self._who = [
            Identity(
                instance_id(100 * run + rank),
                self._began,
                "trainer",
                f"v{run}",
                job=f"job-{run}",
                rank=rank,
                world_size=RANKS,
                simulated=True,
            )
            for rank in range(RANKS)
        ]
        self._until = [self._began + rank * EVERY / RANKS for rank in range(RANKS)]
        self._seq = [0] * RANKS

    def report(self, compiled: dict[int, Compile]) -> tuple[int, float]:
        """Waits for the next window to end and posts it; returns the rank and the end of the
        window."""
        rank = min(range(RANKS), key=self._until.__getitem__)
        start, end = self._until[rank], self._until[rank] + EVERY
        time.sleep(max(0.0, end - time.time()))
        self._seq[rank] += 1
        done = [compiled.pop(rank)] if rank in compiled and compiled[rank].at <= end else []
        region = Region("step", 50, compiled=50, sampled=50, latency=Sketch.of([0.2] * 50))
        report = Report(
            (self._seq[rank], self._seq[rank]), (start, end), regions=[region], compiles=done
        )
        body = dumps(Request(1, time.time(), self._who[rank], [report]))
        status, response = answer_of(self._stack.port, self._stack.key, body)
        assert status == 200, response
        self._until[rank] = end
        return rank, end


def run(stack: Stack, number: int) -> Delay:
    """Runs one job: all ranks compile, then one rank compiles alone. Each run uses another frame,
    since a repetition of an earlier version's divergence opens no alert."""
    job, frame = Job(stack, number), f"step{number}"
    compiled = {rank: replace(FIRST, frame=frame, at=time.time() + 5.0) for rank in range(RANKS)}
    for _ in range(2 * RANKS):
        job.report(compiled)
    alone = time.time() + 3.0
    compiled[2] = replace(FIRST, id="0/1", frame=frame, kind="recompile", at=alone)
    behind, certain = set(range(RANKS)), 0.0
    while behind:
        rank, end = job.report(compiled)
        if end > alone + SLACK:
            behind.discard(rank)
            certain = time.time()
    sql = (
        f"SELECT extract(epoch FROM opened_at) FROM alert WHERE title LIKE '%v{number}:%' OR "
        f"title LIKE '%v{number} %'"
    )
    [[opened]] = wait_for("the alert is open", lambda: stack.rows(sql), seconds=90, every=0.05)
    return Delay(float(opened) - alone, float(opened) - certain)


def main() -> int:
    """Prints one line per run, and the longest times; 1 if one of them misses the goal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    runs = []
    with tempfile.TemporaryDirectory(prefix="compilewatch-bench-") as folder:
        stack = Stack(database="postgresql", folder=Path(folder), outbound="127.0.0.1:9")
        try:
            stack.start(channel="http://127.0.0.1:9/services/T000/B000/simulated")
            for number in range(1, parser.parse_args().runs + 1):
                runs.append(run(stack, number))
                delay = runs[-1]
                print(f"alert {delay.from_compilation:.1f} s after the compilation", end=", ")
                print(f"{delay.from_report:.1f} s after the report that confirmed it", flush=True)
        except AssertionError as error:
            raise SystemExit(f"{error}\n{stack.logs()}") from error
        finally:
            stack.close()
    return show(
        [
            Row(
                "confirmation in the data to the alert, longest",
                "s",
                max(run.from_report for run in runs),
                goal=GOAL,
            ),
            Row(
                "compilation on a single rank to the alert, longest",
                "s",
                max(run.from_compilation for run in runs),
            ),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
