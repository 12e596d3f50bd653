"""A dashboard that is restored from an older copy of its database receives its lost windows again
from running agents, and holds everything once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import wait_for


@pytest.fixture
def own_line(tmp_path: Path) -> Iterator[Line]:
    """A dashboard that only this test restores."""
    folder = tmp_path / "line"
    folder.mkdir()
    running = Line(folder)
    yield running
    running.close()


def copy(source: Path, target: Path) -> None:
    """A copy of a database in use."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def restore(line: Line, backup: Path) -> None:
    """Kills the dashboard and starts it with the older database."""
    [role] = line.stack.roles
    line.stack.kill(role)
    line.stack.manage("restore", str(backup))
    line.stack.start_role(role)
    wait_for("the dashboard is back", lambda: line.stack.status("/healthz") == 200, seconds=120)


@pytest.mark.parametrize("known", ["with the agents", "without the agents"])
def test_the_copy(known: str, own_line: Line, tmp_path: Path, add_result: AddResult) -> None:
    backup = tmp_path / "backup.sqlite3"
    database = own_line.stack.folder / "compilewatch.sqlite3"
    jobs = Jobs(tmp_path, own_line.endpoint, own_line.stack.key, "restored")
    if known == "without the agents":
        copy(database, backup)
    running = [jobs.start("--impatient", "--seconds", "600") for _ in range(sized(2, 8))]
    try:
        wait_for("the jobs report", lambda: grown(own_line, len(running), 8), seconds=120)
        if known == "with the agents":
            copy(database, backup)
        wait_for("the jobs report more", lambda: grown(own_line, len(running), 25), seconds=120)
        before = acknowledged(own_line)
        restore(own_line, backup)
        wait_for(
            "all lost windows are stored again",
            lambda: covers(acknowledged(own_line), before),
            seconds=120,
        )
    finally:
        jobs.end()
    jobs.sweep()
    found = own_line.check(jobs.version, jobs.ours(), jobs.recorded())
    assert found["lost that were on disk"] == found["shown missing"] == 0
    add_result("27", **found, restored=known)


def acknowledged(line: Line) -> dict[str, set[int]]:
    return {instance: held.numbers for instance, held in line.senders().items()}


def covers(now: dict[str, set[int]], before: dict[str, set[int]]) -> bool:
    return all(numbers <= now.get(instance, set()) for instance, numbers in before.items())


def grown(line: Line, instances: int, windows: int) -> bool:
    found = acknowledged(line)
    return len(found) == instances and all(len(numbers) >= windows for numbers in found.values())
