"""Templates of databases: each kind is migrated once per test run and then copied, because the
migrations take longer than many tests."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

REPOSITORY = Path(__file__).resolve().parents[2]
_SHARED = "COMPILEWATCH_TEST_SHARED"


def shared_folder() -> Path:
    """The folder that all processes of a test run share; the first process creates and removes
    it."""
    if _SHARED not in os.environ:
        folder, owner = tempfile.mkdtemp(prefix="compilewatch-shared-"), os.getpid()
        os.environ[_SHARED] = folder
        atexit.register(lambda: os.getpid() == owner and _remove(Path(folder)))
    return Path(os.environ[_SHARED])


def copy_file(file: Path) -> None:
    """Creates a migrated SQLite file at this path."""
    folder = shared_folder() / "sqlite"
    with _lock(folder):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=shared_folder()) as made:
                _migrate(COMPILEWATCH_DATA=made, COMPILEWATCH_DATABASE_URL="")
                Path(made).rename(folder)
    shutil.copy(folder / "compilewatch.sqlite3", file)


def copy_database(name: str, server: Mapping[str, str]) -> None:
    """Replaces a PostgreSQL database on this server by a migrated one."""
    _execute(server, f'DROP DATABASE IF EXISTS "{name}"')
    _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{template_database(server)}"')


def template_database(server: Mapping[str, str]) -> str:
    """The name of the migrated database on this server, the tests' one."""
    name = f"compilewatch_{shared_folder().name.rpartition('-')[2].lower()}_migrated"
    done = shared_folder() / "postgresql.json"
    with _lock(done):
        if not done.exists():
            _execute(server, f'CREATE DATABASE "{name}"')
            address = "{user}@{host}:{port}".format(**server)
            _migrate(COMPILEWATCH_DATABASE_URL=f"postgresql://{address}/{name}")
            done.write_text(json.dumps({"name": name, "server": dict(server)}))
    return name


def use_template(database: dict[str, Any]) -> None:
    """Makes Django's test database a copy of the template. SQLite uses a file as in production:
    several threads share it, with its real locks."""
    test = database.setdefault("TEST", {})
    if database["ENGINE"].endswith("sqlite3"):
        test["NAME"] = str(Path(os.environ["COMPILEWATCH_DATA"], "tests.sqlite3"))
        copy_file(Path(test["NAME"]))
    else:
        names = {"user": "USER", "host": "HOST", "port": "PORT"}
        test["TEMPLATE"] = template_database(
            {name: str(database[key]) for name, key in names.items()}
        )


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError, psycopg.Error):
        made = json.loads((folder / "postgresql.json").read_text())
        _execute(made["server"], f'DROP DATABASE IF EXISTS "{made["name"]}"')
    shutil.rmtree(folder, ignore_errors=True)


def _migrate(**environment: str) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"],
        cwd=REPOSITORY,
        env=os.environ | environment,
        check=True,
    )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _execute(server: Mapping[str, str], statement: str) -> None:
    with psycopg.connect(dbname="postgres", autocommit=True, **server) as connection:  # type: ignore[arg-type]
        connection.execute(statement.encode())
