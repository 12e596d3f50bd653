"""Processes that one process forked or started through multiprocessing share a job; a program that
the process only starts has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

JOB = """
import multiprocessing, os, subprocess, sys
import compilewatch

def work(deeper=0):
    compilewatch.init(model="m", interval=200)
    compilewatch.watch(lambda: None, name="forward")()
    if deeper:
        child = multiprocessing.get_context("spawn").Process(target=work)
        child.start()
        child.join()

if __name__ == "__main__":
    how = sys.argv[1]
    if how != "program alone":
        compilewatch.init(model="m", interval=200)
    if how in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(how).Process(target=work, args=(1,))
        child.start()
        child.join()
    elif how == "os.fork":
        for _ in range(2):
            if not os.fork():
                work()
                sys.exit()
            os.wait()
    elif how == "program":
        subprocess.run([sys.executable, sys.argv[0], "program alone"], check=True)
    elif how == "shell":
        subprocess.run(f"{sys.executable} {sys.argv[0]} 'program alone'; true", shell=True, check=True)
    else:
        work()
"""


def identities(dashboard: Dashboard) -> dict[int, dict[str, object]]:
    return {request["instance"]["pid"]: request["instance"] for request in dashboard.requests}


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "os.fork"])
def test_related_processes_share_a_job(dashboard: Dashboard, tmp_path: Path, how: str) -> None:
    (tmp_path / "job.py").write_text(JOB)
    done = run(tmp_path / "job.py", how, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, "")
    found = identities(dashboard)
    assert len(found) == 3
    assert len({one.get("job") for one in found.values()}) == 1 and all(
        one["job"] for one in found.values()
    )
    assert all(one.get("world_size", 1) == 1 and one.get("rank", 0) == 0 for one in found.values())
    assert sorted(str(one["role"]) for one in found.values()) == ["parent", "worker", "worker"]


@pytest.mark.parametrize("how", ["program", "shell", "program alone"])
def test_other_processes_have_no_job(dashboard: Dashboard, tmp_path: Path, how: str) -> None:
    (tmp_path / "job.py").write_text(JOB)
    done = run(tmp_path / "job.py", how, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, "")
    assert [one.get("job", "") for one in identities(dashboard).values()] == [""] * (
        1 if how == "program alone" else 2
    )


def test_an_operator_names_a_process_and_a_pod_its_workers(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setenv("POD_NAME", "ranker-7f9c")
    run(tmp_path / "job.py", "program alone", ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    run(
        tmp_path / "job.py",
        "program alone",
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
        INSTANCE="blue-1",
    )
    assert sorted(str(one["label"]) for one in identities(dashboard).values()) == [
        "blue-1",
        "ranker-7f9c",
    ]
