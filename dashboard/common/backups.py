"""Backup validation: a file replaces the SQLite database only if it is whole, ours, and not of a
later release."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from dashboard.common.unicode_safety import visible_name

SQLITE_MAGIC, HEADER_BYTES = b"SQLite format 3\x00", 100
_FOREIGN_OBJECTS_SQL = (
    "SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name FROM "
    "sqlite_master WHERE type IS NULL"
    " OR type NOT IN ('table', 'index') OR (type = 'table' AND sql NOT LIKE 'CREATE TABLE "
    "%') ORDER BY name LIMIT 1"
)
"""Finds views, triggers and virtual tables: they run code when rows are read or written. The
dashboard's SQLite database has none."""


class BackupError(ValueError):
    """Why a file is not a backup of this dashboard, as the end of a sentence about the file."""


def header_check(path: Path) -> None:
    """Checks for a SQLite header whose size matches the file. Raises BackupError."""
    with path.open("rb") as file:
        header, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
    if len(header) < HEADER_BYTES or not header.startswith(SQLITE_MAGIC):
        raise BackupError("is not a SQLite database")
    page = int.from_bytes(header[16:18])
    said = int.from_bytes(header[28:32]) * (65536 if page == 1 else page)
    if said != size:
        raise BackupError(f"is damaged: its header states {said} bytes, but the file has {size}")


def backup_check(path: Path) -> None:
    """Checks the whole file. Raises BackupError.

    The check runs nothing in the file and reads no write-ahead log next to it.
    """
    header_check(path)
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        ) as opened:
            opened.execute("PRAGMA trusted_schema = OFF")
            if found := opened.execute(_FOREIGN_OBJECTS_SQL).fetchone():
                kind, name = found
                raise BackupError(
                    f"holds the {visible_name(str(kind))} {visible_name(str(name))}, which "
                    "no backup of compilewatch has"
                )
            integrity_check(opened)
            _release_check(opened)
    except sqlite3.DatabaseError as error:
        raise BackupError(f"is damaged: {visible_name(str(error))}") from error


def integrity_check(opened: sqlite3.Connection) -> None:
    """Runs the integrity check of SQLite over pages, rows and indexes. Raises BackupError."""
    [(verdict,)] = opened.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise BackupError(
            f"is damaged: {' '.join(visible_name(line) for line in verdict.splitlines())}"
        )


def _release_check(opened: sqlite3.Connection) -> None:
    if not opened.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'django_migrations'"
    ).fetchone():
        raise BackupError("is not a compilewatch database: it has no table django_migrations")
    applied = [
        (str(app), str(name))
        for app, name in opened.execute("SELECT app, name FROM django_migrations ORDER BY id")
    ]
    if "ingest" not in (app for app, _ in applied):
        raise BackupError(
            "is not a compilewatch database: it has no migrations of the report inbox"
        )
    if later := _find_unknown_migration(applied):
        app, name = map(visible_name, later)
        raise BackupError(
            f"is from a later release, which has the migration {app}.{name}: install that "
            "release first"
        )


def _find_unknown_migration(applied: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """The first unknown migration of an installed app. Migrations of removed apps do not matter."""
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
    known = {*migrations, *(old for migration in migrations.values() for old in migration.replaces)}
    ours = {config.label for config in apps.get_app_configs()}
    return next((one for one in applied if one[0] in ours and one not in known), None)
