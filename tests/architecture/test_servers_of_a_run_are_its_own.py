"""If no PostgreSQL and no Redis respond, a run starts its own, passes their addresses to the
command and stops them afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.architecture.tree import REPOSITORY
from tests.flow.stack import wait_for

NOWHERE = {"PGHOST": "127.0.0.1", "PGPORT": "1", "COMPILEWATCH_TEST_REDIS": "redis://127.0.0.1:1"}
WORKS = """
import os, pathlib, sys, time
import psycopg, redis
from tests.flow.stack import POSTGRESQL, REDIS_URL
psycopg.connect(dbname="postgres", **POSTGRESQL).close()
redis.Redis.from_url(REDIS_URL).ping()
try:
    pathlib.Path(sys.argv[1]).write_text(f"{POSTGRESQL['port']} {os.environ['COMPILEWATCH_TEST_REDIS'].split(':')[2].split('/')[0]}")
    time.sleep(float(sys.argv[2]))
finally:
    redis.Redis.from_url(REDIS_URL).ping()
    pathlib.Path(sys.argv[1]).with_name("tidied").touch()
sys.exit(7)
"""


def services(*words: str, **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.services", *words]
    environment = {**os.environ, **NOWHERE, **more}
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        text=True,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a background job of a shell ignores it
    )


def left(ports: Path) -> list[str]:
    """The servers of the run that are still running."""
    running = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        line
        for line in running
        if any(f"port={port}" in line or f":{port}" in line for port in ports.read_text().split())
    ]


@pytest.mark.needs("PostgreSQL's programs")
@pytest.mark.needs("Redis's program")
def test_the_command_gets_both_servers_and_its_status_is_returned(tmp_path: Path) -> None:
    run = services(sys.executable, "-c", WORKS, str(tmp_path / "ports"), "0")
    assert run.wait(120) == 7, run.communicate()
    assert left(tmp_path / "ports") == []


@pytest.mark.needs("PostgreSQL's programs")
@pytest.mark.needs("Redis's program")
def test_an_interrupted_run_cleans_up_before_its_servers_end(tmp_path: Path) -> None:
    run = services(sys.executable, "-c", WORKS, str(tmp_path / "ports"), "100")
    wait_for("it runs", (tmp_path / "ports").exists, seconds=120, every=0.1)
    time.sleep(0.2)
    os.killpg(run.pid, signal.SIGINT)  # like a terminal
    assert run.wait(60) not in (0, 7)
    assert (tmp_path / "tidied").exists() and left(tmp_path / "ports") == []


@pytest.mark.needs("root, to mount")
@pytest.mark.needs("PostgreSQL's programs")
def test_servers_that_do_not_start_differ_from_failed_tests() -> None:
    run = services(
        sys.executable, "-c", "raise SystemExit(1)", PATH="/nowhere"
    )  # root has no runuser there
    _, said = run.communicate(timeout=120)
    assert run.returncode == 3 and "of this run failed: " in said
