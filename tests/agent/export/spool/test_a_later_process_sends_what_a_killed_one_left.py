"""The next process of a project sends the closed windows of a killed job: under the old id and
identity, once; then the file is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from compilewatch.export.spool import format
from compilewatch.export.spool import recovery as leftovers_module
from compilewatch.export.spool.recovery import SpoolRecovery
from compilewatch.export.transport import Answer

from tests.agent.export.spool.collector import Collector
from tests.agent.export.spool.files import ENDPOINT, KEY, Kept, config, identity, seqs, window
from tests.agent.programs import run
from tests.agent.server import Dashboard

JOB = """
import time, compilewatch
compilewatch.init(model="ranker", version="old", interval=0.1)
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(100):
    call()
print("called", flush=True)
time.sleep(100)
"""
NEXT = """
import os, pathlib, sys, time, compilewatch
folder = pathlib.Path(os.environ["COMPILEWATCH_SPOOL"]) / f"compilewatch-{os.getuid()}"
before = set(folder.glob("*.spool"))
compilewatch.init(model="other", version="new", interval=0.05)
deadline = time.monotonic() + (60 if "wait" in sys.argv else 3)
while before & set(folder.glob("*.spool")) and time.monotonic() < deadline:
    time.sleep(0.05)
"""


def started(folder: Path, endpoint: str, key: str = KEY) -> subprocess.Popen[str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    given = {
        "COMPILEWATCH_ENDPOINT": endpoint,
        "COMPILEWATCH_API_KEY": key,
        "COMPILEWATCH_SPOOL": str(folder),
    }
    return subprocess.Popen(
        [sys.executable, "-c", JOB], env={**clean, **given}, stdout=subprocess.PIPE, text=True
    )


def files(folder: Path) -> list[Path]:
    return list(folder.glob("compilewatch-*/*.spool"))


def until(seen: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def calls_on_disk(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"calls":100') for path in files(folder))


def test_windows_of_a_killed_job_arrive_with_its_own_id(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    dashboard.scripts = [lambda data: (503, {"Retry-After": "300"}, b"")]
    job = started(tmp_path, dashboard.endpoint)
    until(lambda: calls_on_disk(tmp_path) == 1)
    job.send_signal(signal.SIGKILL)
    assert job.wait(60) == -signal.SIGKILL
    [left] = files(tmp_path)
    found = seqs(left)
    done = run(NEXT, "wait", ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert dashboard.calls("forward") == 100
    old = [
        request["instance"]
        for request in dashboard.requests
        if request["instance"]["version"] == "old"
    ]
    assert {who["id"] for who in old} == {left.stem.partition("-")[2]}
    assert {who["model"] for who in old} == {"ranker"}
    assert {who["pid"] for who in old} == {job.pid}
    assert old[-1]["capabilities"]["spool"] == ["yes", ""]
    arrived = [(first, last) for who, first, last in dashboard.acked if who == old[0]["id"]]
    assert sorted(arrived) == found
    assert files(tmp_path) == []


def test_the_files_of_a_running_job_and_of_another_project_are_not_touched(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    dashboard.scripts = [
        lambda data: (
            (503, {"Retry-After": "300"}, b"") if data["instance"]["version"] == "old" else None
        )
    ] * 999
    living, other = (
        started(tmp_path, dashboard.endpoint),
        started(tmp_path, dashboard.endpoint, "cw_ing_other"),
    )
    try:
        until(lambda: calls_on_disk(tmp_path) == 2)
        other.kill()
        other.wait(60)
        done = run(NEXT, ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        assert len(files(tmp_path)) == 2
        assert dashboard.calls("forward") == 0
    finally:
        living.kill()
        living.wait(60)


def test_a_job_that_ends_with_everything_sent_leaves_nothing(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    program = JOB.replace("time.sleep(100)", "time.sleep(0.5)")
    done = run(program, ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(tmp_path))
    assert (done.returncode, dashboard.calls("forward")) == (0, 100)
    assert files(tmp_path) == []


def test_windows_left_by_one_start_are_sent_by_the_next_start_of_the_same_process(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    dashboard.scripts = [lambda data: (503, {}, b"")] * 2
    program = JOB.replace("time.sleep(100)", "compilewatch.shutdown()") + NEXT
    done = run(program, "wait", ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(tmp_path))
    assert (done.returncode, dashboard.calls("forward")) == (0, 100)
    assert files(tmp_path) == []


def left_behind(folder: Path, name: str, windows: int, text: str = "") -> Path:
    kept = Kept(folder, name)
    for seq in range(1, windows + 1):
        kept.close(seq, text=text)
    kept.spool.close(kept.outbox.pending())
    return kept.path


def test_many_windows_go_in_requests_that_the_dashboard_takes(tmp_path: Path) -> None:
    left_behind(tmp_path, "a", 100)
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(20):
        leftovers.step()
    assert [seq for _, seq in dashboard.windows] == [(number, number) for number in range(1, 101)]
    assert all(len(request["reports"]) <= 32 for request in dashboard.requests)  # type: ignore[arg-type]
    assert files(tmp_path) == []


def test_a_file_that_is_read_in_several_pieces_is_sent_to_its_end(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "a", 400, text="x" * 500)
    assert path.stat().st_size > 3 * format.READ_CHUNK_BYTES
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(20):
        leftovers.step()
    assert [seq for _, seq in dashboard.windows] == [(number, number) for number in range(1, 401)]
    assert files(tmp_path) == []


def test_a_recovery_that_is_killed_continues_later(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "a", 100)
    first, second = Collector(), Collector()
    interrupted = SpoolRecovery(config(tmp_path), first)
    interrupted.step()
    interrupted.step()
    interrupted.close()
    assert len(first.windows) == 64
    assert seqs(path)[0] == (65, 65)
    following = SpoolRecovery(config(tmp_path), second)
    for _ in range(9):
        following.step()
    assert [seq[0] for _, seq in second.windows] == list(range(65, 101))


def test_a_busy_dashboard_is_not_asked_at_every_tick(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "a", 3)
    dashboard = Collector()
    dashboard.answers = [Answer(503, problem="busy", retry_after="300")] * 9
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(20):
        leftovers.step()
    assert len(dashboard.requests) == 1
    leftovers.close()
    assert seqs(path) == [(1, 1), (2, 2), (3, 3)]


def test_expired_windows_are_removed_for_every_project(tmp_path: Path) -> None:
    old, foreign, unfinished = (left_behind(tmp_path, name, 2) for name in "abc")
    foreign = foreign.rename(foreign.with_name("0" * 16 + foreign.name[16:]))
    unfinished = unfinished.rename(unfinished.with_name(unfinished.name + ".unfinished"))
    recent = left_behind(tmp_path, "d", 2)
    recent = recent.rename(recent.with_name("0" * 16 + recent.name[16:]))
    for path in (old, foreign, unfinished):
        os.utime(path, (time.time() - 8 * 86400,) * 2)
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    leftovers.step()
    assert dashboard.windows == []
    assert files(tmp_path) == [recent]
    assert not unfinished.exists()
    assert leftovers.errors == 1  # this is our loss; the other project must report its own


def test_the_folder_is_scanned_again_after_a_minute(tmp_path: Path) -> None:
    now = [100.0]
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard, lambda: now[0])
    leftovers.step()
    left_behind(tmp_path, "a", 1)
    leftovers.step()
    assert dashboard.windows == []
    now[0] += leftovers_module.SCAN_INTERVAL_SECONDS
    leftovers.step()
    assert len(dashboard.windows) == 1


def test_the_identity_that_arrives_is_the_one_on_disk(tmp_path: Path) -> None:
    left_behind(tmp_path, "a", 1)
    dashboard = Collector()
    SpoolRecovery(config(tmp_path), dashboard).step()
    sent = dashboard.requests[0]["instance"]
    mine = identity()
    assert sent == {
        "id": mine.id,
        "started": 1.0,
        "model": "ranker",
        "version": "7",
        "host": "there",
        "torch": "2.11.0",
    }
    assert window(1).seq == dashboard.windows[0][1]


@pytest.mark.parametrize("change", [{"endpoint": ENDPOINT + "/other"}, {"api_key": "another"}])
def test_a_project_is_identified_by_endpoint_and_key(
    tmp_path: Path, change: dict[str, str]
) -> None:
    path = left_behind(tmp_path, "a", 1)
    dashboard = Collector()
    SpoolRecovery(config(tmp_path, **change), dashboard).step()
    assert dashboard.windows == []
    assert path.exists()
