"""PostgreSQL is backed up while reports arrive, and restored by the commands of the guide; windows
that are not in the backup are requested and accepted again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from compilewatch.wire.codec import dumps

from tests.dashboard.requests import request_make
from tests.flow.guide import guide_run
from tests.flow.stack import Stack, answer_of, wait_for

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A web process on PostgreSQL."""
    running = Stack(database="postgresql", folder=tmp_path, outbound="127.0.0.1:9")
    try:
        running.manage("migrate", "--verbosity=0")
        running.key = re.search(r"cw_ing_\w+", running.manage("setup_project", "--name", "Flow"))[0]  # type: ignore[index]
        start(running)
        yield running
    finally:
        running.close()


def start(stack: Stack) -> None:
    stack.start_role("web")
    wait_for("the web process responds", lambda: stack.status("/healthz") == 200, seconds=120)


def send(stack: Stack, first: int, count: int) -> dict[str, Any]:
    """Sends this number of windows of one instance."""
    body = dumps(request_make(minutes=count, first_seq=first, end=time.time()))
    found: dict[str, Any] = wait_for(
        "the report is accepted", lambda: answer_of(stack.port, stack.key, body)[1], seconds=60
    )
    assert len(found["acked"]) == count
    return found


def test_a_backup_that_is_three_windows_old(stack: Stack, tmp_path: Path) -> None:
    environment = stack.environment | {"BACKUP": str(tmp_path / "compilewatch.dump")}
    send(stack, 1, 3)
    guide_run("PostgreSQL backup", environment)
    assert send(stack, 4, 3)["next_seq"] == 7

    stack.kill("web")
    with psycopg.connect(dbname="postgres", autocommit=True, **stack.server) as connection:
        connection.execute(f'DROP DATABASE "{stack.name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{stack.name}"')
    guide_run("PostgreSQL restore", environment)
    start(stack)

    assert send(stack, 7, 1)["held"] == [[1, 3], [7, 7]]
    assert send(stack, 4, 3)["next_seq"] == 8
    assert stack.rows("SELECT seq_first FROM ingest_inbox ORDER BY seq_first") == [
        (number,) for number in range(1, 8)
    ]
