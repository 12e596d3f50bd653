"""`manage.py restore` replaces the SQLite database with a backup, but never while a process has the
database open."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.flow.guide import guide_run
from tests.flow.stack import REPOSITORY


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a dashboard with its database in a folder of the test."""
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    return plain | {"COMPILEWATCH_DATA": str(tmp_path), "BACKUP": str(tmp_path / "copy.backup")}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty, migrated database of the dashboard."""
    folder = tmp_path_factory.mktemp("migrated")
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(
        command,
        cwd=REPOSITORY,
        env=plain | {"COMPILEWATCH_DATA": str(folder)},
        timeout=120,
        check=True,
    )
    return folder / "compilewatch.sqlite3"


@pytest.fixture
def database(migrated: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that keeps the database open, in the journal mode of the dashboard."""
    shutil.copyfile(migrated, tmp_path / "compilewatch.sqlite3")
    with closing(
        sqlite3.connect(tmp_path / "compilewatch.sqlite3", isolation_level=None)
    ) as opened:
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("CREATE TABLE word (word text)")
        yield opened


def restore(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "restore", environment["BACKUP"], *words]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def words_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        return [word for (word,) in opened.execute("SELECT word FROM word ORDER BY rowid")]


def test_the_steps_of_the_guide_restore_a_backup(
    environment: dict[str, str], database: sqlite3.Connection, tmp_path: Path
) -> None:
    place = tmp_path / "compilewatch.sqlite3"
    database.execute("INSERT INTO word VALUES ('before')")
    guide_run("SQLite backup", environment)
    database.execute("INSERT INTO word VALUES ('after')")

    refused = restore(environment, "--wait", "0")
    assert (
        refused.returncode == 1 and "The database is in use: stop the dashboard" in refused.stderr
    )
    assert words_of(place) == ["before", "after"]
    assert not [*tmp_path.glob("*.restoring*")]

    database.close()
    guide_run("SQLite restore", environment)
    assert words_of(place) == ["before"]
    assert words_of(tmp_path / "compilewatch.sqlite3.before-restore") == ["before", "after"]
    assert place.stat().st_mode & 0o777 == 0o600


def little_room(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A command that may write at most 8 KiB to a file, as on a full disk."""
    limited = ["prlimit", "--fsize=8192", sys.executable, "manage.py", *words]
    return subprocess.run(
        limited,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_full_disk_is_one_sentence_and_changes_nothing(
    environment: dict[str, str], database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("INSERT INTO word VALUES (?)", ("before" * 10_000,))
    guide_run("SQLite backup", environment)
    database.close()
    for words in (
        ["backup", str(tmp_path / "second")],
        ["restore", environment["BACKUP"]],
        ["backup", str(tmp_path / "none/second")],
    ):
        refused = little_room(environment, *words)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert re.search("cannot (back up|be)", refused.stderr), refused.stderr
    assert words_of(tmp_path / "compilewatch.sqlite3") == ["before" * 10_000]
    assert not [
        *tmp_path.glob("*.unfinished"),
        *tmp_path.glob("*.restoring"),
        *tmp_path.glob("second"),
    ]


def test_a_backup_before_there_is_a_database_is_an_error(
    environment: dict[str, str], tmp_path: Path
) -> None:
    refused = little_room(environment, "backup", str(tmp_path / "copy"))
    assert refused.returncode == 1 and "There is no database" in refused.stderr
    assert not (tmp_path / "compilewatch.sqlite3").exists()


def test_a_damaged_backup_changes_nothing(
    environment: dict[str, str], database: sqlite3.Connection, tmp_path: Path
) -> None:
    Path(environment["BACKUP"]).write_bytes(b"no database at all" * 1000)
    database.execute("INSERT INTO word VALUES ('before')")
    database.close()
    refused = restore(environment)
    assert (
        refused.returncode == 1
        and "is not a SQLite database. Nothing was changed." in refused.stderr
    )
    assert words_of(tmp_path / "compilewatch.sqlite3") == ["before"]


def test_a_damaged_database_is_replaced(
    environment: dict[str, str], database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("INSERT INTO word VALUES ('before')")
    guide_run("SQLite backup", environment)
    database.close()
    (tmp_path / "compilewatch.sqlite3").write_bytes(b"no database at all" * 1000)
    assert restore(environment).returncode == 0
    assert words_of(tmp_path / "compilewatch.sqlite3") == ["before"]
