"""Jobs on a disk that is full or read-only for a while are killed at random moments: windows on
disk or acknowledged arrive, each number once; the refusal of the disk is logged once; and only the
refused windows and the open window are lost."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.server import Dashboard, Reply, assert_sent_once
from tests.faults.jobs import Jobs
from tests.faults.ledger import ledger_read
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.faults.test_a_full_disk_is_a_503 import fill, small_disk
from tests.flow.stack import wait_for

REFUSED = "compilewatch: closed windows are in memory only ("
VERSION = "killed"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "spools", 1) as folder:
        yield folder


@pytest.fixture
def jobs(dashboard: Dashboard, disk: Path, tmp_path: Path) -> Iterator[Jobs]:
    running = Jobs(tmp_path, dashboard.endpoint, KEY, VERSION)
    yield running
    running.end()


class Full:
    """All space is used."""

    why = "No space left on device"

    def __init__(self, disk: Path) -> None:
        self._disk = disk

    def refuse(self) -> None:
        fill(self._disk)

    def allow(self) -> None:
        (self._disk / "filler").unlink(missing_ok=True)


class ReadOnly:
    """Writing is impossible; a disk with an open file cannot be made read-only."""

    why = "Read-only file system"

    def __init__(self, disk: Path) -> None:
        self._disk = disk
        (disk / f"compilewatch-{disk.stat().st_uid}").mkdir(mode=0o700)

    def refuse(self) -> None:
        subprocess.run(
            ["mount", "-o", "remount,ro", str(self._disk)], check=False, capture_output=True
        )

    def allow(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", str(self._disk)], check=True)


@pytest.mark.parametrize("kind", [Full, ReadOnly], ids=["full", "read-only"])
def test_only_refused_windows_and_the_open_window_are_lost(
    kind: type[Full] | type[ReadOnly],
    dashboard: Dashboard,
    jobs: Jobs,
    disk: Path,
    seed: int,
    add_result: AddResult,
) -> None:
    print(f"seed {seed}")
    chance, state = random.Random(seed), kind(disk)
    dashboard.scripts = [lambda data: busy() if chance.random() < 0.8 else None] * 1_000_000
    said = 0
    for _ in range(sized(4, 60)):
        said += one_job(jobs, state, chance, starts_refused=kind is ReadOnly)
    dashboard.scripts = []
    jobs.sweep()
    figures = compared(dashboard, jobs)
    add_result("37", **figures, said=said)
    assert said > 0 < figures["kept"]


def busy() -> Reply:
    return 503, {}, b""


def one_job(
    jobs: Jobs, state: Full | ReadOnly, chance: random.Random, *, starts_refused: bool
) -> int:
    """The disk refuses, perhaps accepts again, and the job is killed; returns the number of log
    lines about the refusal."""
    if starts_refused:
        state.refuse()
    process = jobs.start("--impatient", "--interval", "0.1")
    wait_for("it closes windows", lambda: closed(jobs._ledger(process)) > 2, seconds=60, every=0.02)
    state.refuse()
    if chance.random() < 0.7:
        wait_for(
            "the refusal is logged",
            lambda: REFUSED in jobs.output(process),
            seconds=60,
            every=0.02,
        )
    time.sleep(chance.uniform(0.0, 0.4))
    if chance.random() < 0.5:
        state.allow()
        time.sleep(chance.uniform(0.0, 0.6))
    assert process.poll() is None, jobs.output(process)
    process.kill()
    process.wait(60)
    state.allow()
    lines = [line for line in jobs.output(process).splitlines() if line.startswith(REFUSED)]
    assert len(lines) <= 1
    assert all(state.why in line for line in lines)
    return len(lines)


def closed(ledger: Path) -> int:
    """The number of windows that the job has closed."""
    return sum(map(len, ledger_read(ledger).windows.values())) if ledger.exists() else 0


def compared(dashboard: Dashboard, jobs: Jobs) -> dict[str, int]:
    """Compares the windows that arrived with the ledgers of the jobs."""
    assert_sent_once(dashboard)
    kept = lost = 0
    for job in jobs.ours():
        for instance, windows in job.windows.items():
            ranges = [(first, last) for who, first, last in dashboard.acked if who == instance]
            numbers = [number for first, last in ranges for number in range(first, last + 1)]
            assert len(numbers) == len(set(numbers))
            held, on_disk = set(numbers), job.kept.get(instance, set())
            assert on_disk | job.acked.get(instance, set()) <= held <= set(windows)
            arrived = [report for (who, *_), report in dashboard.acked.items() if who == instance]
            for report in arrived:
                refused = [
                    number
                    for number in windows
                    if number < report["seq"][0] and number not in on_disk
                ]
                assert report.get("losses", {}).get("spool_errors", 0) >= len(refused)
            calls = sum(
                region["calls"] for report in arrived for region in report.get("regions", [])
            )
            assert calls == sum(
                region.calls for number in held for region in windows[number].regions
            )
            kept, lost = kept + len(on_disk), lost + len(set(windows) - held)
    known = {instance for job in jobs.recorded() for instance in job.windows}
    assert {who for who, *_ in dashboard.acked} <= known  # nothing arrived under an unknown id
    return {"jobs": len(jobs.ours()), "kept": kept, "lost": lost}
