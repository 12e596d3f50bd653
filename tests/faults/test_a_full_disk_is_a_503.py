"""A full disk: reports are refused with the time to retry and none is half stored. When space is
free again, the service recovers automatically."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.cluster import Cluster
from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import Stack, wait_for
from tests.machine import need

pytestmark = pytest.mark.timeout(900)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of this size."""
    need("root, to mount")
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(folder)],
        check=True,
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Uses all remaining space."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


def fill_until_refused(disk: Path, prober: Prober) -> Path:
    """Fills the disk until reports are refused. A database may find space in its own files for some
    time; space that it frees is used, too."""
    began = time.monotonic()

    def refused() -> bool:
        fill(disk)
        return len([answer for answer in prober.since(began) if answer.busy]) >= 10

    wait_for("reports are refused", refused, seconds=300, every=0.1)
    return disk / "filler"


def full_and_free_again(
    disk: Path, stack: Stack, prober: Prober, times: int, ready: tuple[int, ...] = (200, 503)
) -> dict[str, float]:
    """Fills and frees the disk; returns the results. `ready` lists the statuses that /readyz may
    return meanwhile."""
    back = []
    for _ in range(times):
        prober.wait_for_ack()
        began = time.monotonic()
        filler = fill_until_refused(disk, prober)
        assert stack.status("/healthz") == 200 and stack.status("/readyz") in ready
        filler.unlink()
        back.append(prober.wait_for_ack())
        answers = prober.since(began)
        assert all(answer.status == 200 or answer.busy for answer in answers), {
            answer.status for answer in answers
        }
    return {"times": times, "acknowledged": prober.acked, "longest_back_s": round(max(back), 2)}


def test_the_database_of_the_embedded_server(tmp_path: Path, add_result: AddResult) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        stack = Stack(database="sqlite", folder=disk, outbound="127.0.0.1:9")
        try:
            stack.start(channel="http://127.0.0.1:9/none")
            with Prober(stack, "full") as prober:
                found = full_and_free_again(disk, stack, prober, sized(1, 10), ready=(503,))
            prober.check()
            log = (disk / "everything.log").read_text()
            assert "Traceback" not in log, log
            add_result("28 SQLite, log", **found)
        finally:
            stack.close()


@pytest.mark.full_only
def test_the_database_of_the_full_stack(tmp_path: Path, add_result: AddResult) -> None:
    with small_disk(
        Path(f"{tmp_path.parent.parent.parent}/compilewatch-disk-{os.getpid()}"), 160
    ) as disk:
        (disk / "cluster").mkdir(mode=0o700)
        cluster = Cluster(
            folder=disk / "cluster", settings=("min_wal_size=32MB", "max_wal_size=32MB")
        )
        cluster.start()
        stack = Stack(
            database="postgresql", folder=tmp_path, outbound="127.0.0.1:9", server=cluster.address
        )
        try:
            stack.start(channel="http://127.0.0.1:9/none")
            with Prober(stack, "full") as prober:
                found = full_and_free_again(disk, stack, prober, 5)
            prober.check()
            add_result("28 PostgreSQL", **found)
        finally:
            stack.close()
            cluster.close()


def test_the_spool_of_an_agent(
    line: Line, jobs: Jobs, tmp_path: Path, add_result: AddResult
) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        (disk / "spools").mkdir(mode=0o700)
        fill(disk)
        process = jobs.start("--seconds", "3", endpoint=line.endpoint, spool=str(disk / "spools"))
        assert process.wait(120) == 0
        warning, figures = jobs.output(
            process
        ).splitlines()  # one line about the disk, one with the duration of the shutdown
        assert warning.startswith("compilewatch: ") and "No space left on device" in warning, (
            warning
        )
        assert json.loads(figures)
    found = line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["windows lost"] == 0
    assert found["calls folded"] == found["calls"]
    shown = (
        "SELECT max(spool_errors) FROM instance JOIN model_version ON model_version.id = "
        f"version_id WHERE name = '{jobs.version}'"
    )
    [(errors,)] = line.stack.rows(shown)
    assert errors > 0
    add_result("28 spool", **found, spool_errors_shown=errors)
