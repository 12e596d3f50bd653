"""Databases that are migrated once per test process and then copied: migrations take longer than
many tests."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

TEMPLATE = f"compilewatch_migrated_{os.getpid()}"
_files: list[Path] = []
_servers: list[Mapping[str, str]] = []
"""The server that contains the template, once created."""


def file_migrate(file: Path, migrate: Callable[[], object]) -> None:
    """Creates a migrated SQLite file at this path."""
    if _files:
        shutil.copy(_files[0], file)
        return
    migrate()
    folder = tempfile.mkdtemp(prefix="compilewatch-migrated-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = Path(folder, "migrated.sqlite3")
    with (
        contextlib.closing(sqlite3.connect(file)) as source,
        contextlib.closing(sqlite3.connect(kept)) as target,
    ):
        source.backup(target)
    _files.append(kept)


def database_migrate(name: str, server: Mapping[str, str], migrate: Callable[[], object]) -> None:
    """Migrates this database, which is empty and has no connections."""
    if _servers:
        _execute(
            server, f'DROP DATABASE "{name}"', f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"'
        )
        return
    migrate()
    _execute(server, f'CREATE DATABASE "{TEMPLATE}" TEMPLATE "{name}"')
    _servers.append(server)
    atexit.register(_execute, server, f'DROP DATABASE IF EXISTS "{TEMPLATE}"')


def _execute(server: Mapping[str, str], *statements: str) -> None:
    with psycopg.connect(dbname="postgres", autocommit=True, **server) as connection:  # type: ignore[arg-type]
        for statement in statements:
            connection.execute(statement.encode())
