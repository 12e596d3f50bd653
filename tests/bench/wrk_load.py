"""Load by wrk with bodies encoded in advance: sent reports, acknowledged reports by ID, and the
statuses of the rest."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.bench.line import Line
from tests.bench.load_reports import Sender

SCRIPT = Path(__file__).parent / "reports.lua"
THREADS = 2


def bodies_write(folder: Path, *, count: int, instances: int, seed: int) -> int:
    """One file per thread; returns the bytes. The reports of an instance are in one file, in the
    order of their numbers."""
    senders = [Sender(index, seed) for index in range(instances)]
    for thread in range(THREADS):
        own = senders[thread::THREADS]
        with (folder / f"bodies-{thread + 1}").open("wb") as file:
            for number in range(count // THREADS):
                sender = own[number % len(own)]
                body = sender.body()
                file.write(f"{sender.id}-{sender.seq} {len(body)}\n".encode() + body)
                sender.seq += 1
    return sum(file.stat().st_size for file in folder.glob("bodies-*"))


@dataclass
class Wrk:
    """Results of a run."""

    seconds: float
    statuses: Counter[int]
    """Statuses of all responses."""
    errors: int
    """Broken connections, and requests beyond wrk's time limit."""
    p50: float
    p99: float
    acknowledged: Counter[str]
    """Distinct reports by instance."""


def wrk_run(line: Line, folder: Path, *, seconds: float, connections: int) -> Wrk:
    """Runs wrk, which sends the next request immediately after each response."""
    words = [
        "wrk",
        f"-t{THREADS}",
        f"-c{connections}",
        f"-d{seconds:.0f}s",
        "--timeout",
        "30s",
        "-s",
        str(SCRIPT),
    ]
    address = f"http://127.0.0.1:{line.port}"
    done = subprocess.run(
        [*words, address, "--", str(folder), line.key, "/api/v1/reports"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {
        name: float(value)
        for name, value in re.findall(r"^([a-z]+\d*_?[a-z]*) ([\d.]+)$", done.stdout, re.MULTILINE)
    }
    answers = [
        line.split(" ")
        for file in folder.glob("answers-*")
        for line in file.read_text().splitlines()
    ]
    ids = {id for status, id in answers if status == "200"}
    acknowledged = Counter(id.partition("-")[0] for id in ids)
    errors = int(sum(value for name, value in found.items() if name.startswith("errors_")))
    took, statuses = found["duration_us"] / 1e6, Counter(int(status) for status, _ in answers)
    return Wrk(took, statuses, errors, found["p50_us"] / 1000, found["p99_us"] / 1000, acknowledged)
