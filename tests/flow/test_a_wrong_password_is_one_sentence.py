"""If the database refuses the connection, every process ends with one sentence, without the
password, and an exit code. A database that does not respond yet is waited for."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.test_a_wrong_setting_is_one_sentence import FULL
from tests.faults.cluster import Cluster
from tests.flow.stack import REDIS_URL, REPOSITORY, free_port, wait_for

HERE = {"COMPILEWATCH_HOSTS": "127.0.0.1", "COMPILEWATCH_BASE_URL": "https://127.0.0.1"}
RIGHT, WRONG = "right-horse-battery", "wrong-horse-battery"
CELERY = [str(Path(sys.executable).parent / "celery"), "-A", "dashboard.celery"]
PROGRAMS = {
    "migrate": ([sys.executable, "manage.py", "migrate"], 1),
    "setup_project": ([sys.executable, "manage.py", "setup_project", "--name", "Flow"], 1),
    "doctor": ([sys.executable, "manage.py", "doctor"], 1),
    "web": ([sys.executable, "manage.py", "web", "--workers", "1"], 1),
    "worker": ([*CELERY, "--quiet", "worker", "--concurrency", "1"], 3),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that requires passwords."""
    running = Cluster(settings=("fsync=off",))
    running.start()
    running.login("cw", RIGHT)
    yield running
    running.close()


def environment(port: int, *, password: str, name: str = "cw", user: str = "cw") -> dict[str, str]:
    kept = {
        variable: value
        for variable, value in os.environ.items()
        if not variable.startswith("COMPILEWATCH_")
    }
    database = {
        "COMPILEWATCH_DATABASE_URL": f"postgresql://{user}:{password}@127.0.0.1:{port}/{name}"
    }
    return (
        kept
        | FULL
        | database
        | {
            "COMPILEWATCH_REDIS_URL": REDIS_URL,
            "COMPILEWATCH_PORT": str(free_port()),
            "PYTHONUNBUFFERED": "1",
        }
    )


def status(port: int, path: str) -> int:
    """The status of a GET, 0 without a response."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0


def started(program: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        PROGRAMS[program][0],
        cwd=REPOSITORY,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_password(program: str, cluster: Cluster) -> None:
    ended = started(program, environment(cluster.port, password=WRONG))
    said = ended.stdout + ended.stderr
    assert ended.returncode == PROGRAMS[program][1], said
    lines = [line for line in said.splitlines() if "COMPILEWATCH_DATABASE_URL" in line]
    assert len(lines) == 1 and 'password authentication failed for user "cw"' in lines[0]
    assert WRONG not in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("name", "user"), [("nothing_of_this_name", "cw"), ("cw", "nobody_of_this_name")]
)
def test_a_wrong_name(name: str, user: str, cluster: Cluster) -> None:
    ended = started("web", environment(cluster.port, password=RIGHT, name=name, user=user))
    assert (ended.returncode, ended.stderr.count("\n"), "Traceback" in ended.stderr) == (
        1,
        1,
        False,
    ), ended.stderr
    assert (
        "COMPILEWATCH_DATABASE_URL refuses the connection" in ended.stderr
        and "FATAL" in ended.stderr
    )


def test_a_database_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    settings = environment(free_port(), password=RIGHT) | HERE
    with (tmp_path / "log").open("w") as log:
        web = subprocess.Popen(
            PROGRAMS["web"][0], cwd=REPOSITORY, env=settings, stdout=log, stderr=log
        )
    try:
        wait_for(
            "it reports that it is not ready",
            lambda: status(int(settings["COMPILEWATCH_PORT"]), "/readyz") == 503,
            seconds=120,
        )
        assert web.poll() is None
    finally:
        web.terminate()
        web.wait(60)


@pytest.mark.parametrize("program", ["migrate", "setup_project"])
def test_a_command_does_not_wait_for_a_database(program: str) -> None:
    ended = started(program, environment(free_port(), password=RIGHT))
    assert ended.returncode == 1 and RIGHT not in ended.stderr and "Traceback" not in ended.stderr
    assert ended.stderr.startswith(
        "The database of COMPILEWATCH_DATABASE_URL cannot be used: connection failed"
    )


def test_a_worker_waits_for_a_database_and_logs_it(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            PROGRAMS["worker"][0],
            cwd=REPOSITORY,
            env=environment(free_port(), password=RIGHT),
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(
            "it logs the error",
            lambda: "Connection refused" in (tmp_path / "log").read_text(),
            seconds=120,
        )
        assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(120) == 0
    said = (tmp_path / "log").read_text()
    assert RIGHT not in said and "Traceback" not in said
