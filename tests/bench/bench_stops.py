"""Stops and reloads of the web process under load: `python -m tests.bench.bench_stops [--stops 20]
[--servers granian gunicorn]`.

While agents send, the server receives SIGTERM, must end without SIGKILL, and starts again. Then
SIGHUP makes the server replace its workers, and finally one worker is killed. Every acknowledged
report must be stored exactly once. Agents resend reports of broken connections, which must not
count twice."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from dataclasses import dataclass, field
from statistics import median

from tests.bench.line import Line

ENDS_WITHIN = 15.0
LOADED = 1.2
"""Seconds of load before the signal, and after the server is back."""


@dataclass
class Outcome:
    """Results of a number of stops, reloads or kills."""

    took: list[float] = field(default_factory=list)
    hung: int = 0
    broken: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0
    acknowledged: int = 0

    def note(self, line: Line, printed: str, ledger: dict[str, int]) -> None:
        """Adds the results of the generator and compares its ledger with the stored rows."""
        figures = json.loads(printed)
        self.acknowledged += figures["acknowledged"]
        self.broken += figures["broken"]
        for status, count in figures["refused"].items():
            self.refused[status] = self.refused.get(status, 0) + count
        rows = line.rows(
            "SELECT instance_id, count(*), count(DISTINCT seq_first) FROM ingest_inbox GROUP BY 1"
        )
        stored = {instance: (count, different) for instance, count, different in rows}
        self.lost += sum(
            max(0, acked - stored.get(instance, (0, 0))[1]) for instance, acked in ledger.items()
        )
        self.doubled += sum(count - different for count, different in stored.values())

    def row(self, name: str) -> str:
        """One line of the table."""
        times = f"{median(self.took):.2f} s, longest {max(self.took):.2f} s" if self.took else "-"
        return (
            f"{name:20} {len(self.took)} clean, {self.hung} killed after the limit; took "
            f"{times}; {self.acknowledged} acknowledged,"
            f" {self.broken} broken, refused {self.refused or 'none'}, lost "
            f"{self.lost}, counted twice {self.doubled}"
        )


def stop(line: Line, server: str, outcome: Outcome) -> None:
    """Sends SIGTERM, waits for the process to end, and starts a new one."""
    took = line.stop("web", wait=ENDS_WITHIN)
    if took == float("inf"):
        outcome.hung += 1
    else:
        outcome.took.append(took)
    line.serve(server)


def reload(line: Line, server: str, outcome: Outcome) -> None:
    """Sends SIGHUP and waits until every worker is a new process."""
    main = line.processes["web"]
    before = children(main.pid)
    begin = time.perf_counter()
    os.kill(main.pid, signal.SIGHUP)
    while time.perf_counter() - begin < ENDS_WITHIN:
        now = children(main.pid)
        if len(now) >= len(before) and not now & before:
            outcome.took.append(time.perf_counter() - begin)
            return
        time.sleep(0.05)
    outcome.hung += 1


def kill(line: Line, server: str, outcome: Outcome) -> None:
    """Sends SIGKILL to one worker and waits for its replacement."""
    main = line.processes["web"]
    before = children(main.pid)
    begin = time.perf_counter()
    os.kill(max(before), signal.SIGKILL)
    while time.perf_counter() - begin < ENDS_WITHIN:
        now = children(main.pid)
        if len(now) >= len(before) and now != before:
            outcome.took.append(time.perf_counter() - begin)
            return
        time.sleep(0.05)
    outcome.hung += 1


def children(pid: int) -> set[int]:
    """Running child processes of a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123  # not a file
            return {int(child) for child in file.read().split()}
    except OSError:
        return set()


def disturbed(line: Line, server: str, times: int, act: object) -> Outcome:
    """Loads the server, disturbs it in the middle, and compares the acknowledged with the stored
    reports."""
    outcome = Outcome()
    ledger = str(line.folder / "ledger.json")
    for _ in range(times):
        line.rows("DELETE FROM ingest_inbox")
        generator = line.load_start(seconds=2 * LOADED + 4, ledger=ledger)
        time.sleep(LOADED + 1)
        act(line, server, outcome)  # type: ignore[operator]
        printed = generator.communicate()[0]
        with open(ledger) as file:  # noqa: PTH123  # a path of ours
            outcome.note(line, printed, json.load(file))
    return outcome


def main() -> None:
    """Prints one line per server and kind of disturbance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--reloads", type=int, default=5, help="number of reloads, and of kills")
    parser.add_argument("--servers", nargs="+", default=["granian", "gunicorn"])
    options = parser.parse_args()
    line = Line("postgresql")
    try:
        for server in options.servers:
            line.serve(server)
            print(disturbed(line, server, options.stops, stop).row(f"{server}, stops"), flush=True)
            print(
                disturbed(line, server, options.reloads, reload).row(f"{server}, reloads"),
                flush=True,
            )
            print(
                disturbed(line, server, options.reloads, kill).row(f"{server}, kills"), flush=True
            )
            line.stop("web")
    finally:
        line.close()


if __name__ == "__main__":
    main()
