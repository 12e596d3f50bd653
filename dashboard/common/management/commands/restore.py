"""Restore command: `manage.py restore PATH` replaces the SQLite database with a backup. For
PostgreSQL, use pg_restore."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from dashboard.common.backups import BackupError, backup_check, header_check


class Command(BaseCommand):
    """Replaces the database only after every other connection has closed.

    Otherwise the write-ahead log of the old database would be applied to the new file.
    """

    help = (
        "Replaces the SQLite database with a backup and keeps the old database. Stop every "
        "process that has the database open first. The backup is checked, but its accounts and "
        "keys belong to the person who created it: restore only your own backups. For "
        "PostgreSQL, use pg_restore, which runs any SQL that the dump contains "
        "(dashboard/docs/operations/backup.md)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="a file from `manage.py backup`")
        parser.add_argument(
            "--wait",
            type=float,
            default=10.0,
            metavar="SECONDS",
            help="how long to wait for other processes to close the database (default 10)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError(
                "This database is PostgreSQL: restore it with pg_restore "
                "(dashboard/docs/operations/backup.md)."
            )
        backup, place = options["path"], Path(connection.settings_dict["NAME"])
        copy, kept = (
            place.with_name(f"{place.name}.restoring"),
            place.with_name(f"{place.name}.before-restore"),
        )
        try:
            _checked(backup, place, copy)
            try:
                _copied(backup, copy)
                if place.exists():
                    _closed(place, options["wait"])
                    _kept(place, kept)
                copy.replace(place)
            finally:
                copy.unlink(missing_ok=True)
        except BackupError as error:
            raise CommandError(f"{backup} {error}. Nothing was changed.") from error
        self.stdout.write(
            f"{place}: restored from {backup}"
            + (f"; the old database is in {kept}" if kept.exists() else "")
        )


def _checked(backup: Path, place: Path, copy: Path) -> None:
    """Checks before anything is written: another file, a valid header, and enough disk space."""
    if not backup.is_file():
        raise CommandError(f"There is no backup {backup}.")
    for path, what in (
        (place, "is the database itself"),
        (copy, "is the path of restore's temporary copy: rename the backup"),
    ):
        if path.exists() and backup.samefile(path):
            raise BackupError(what)
    try:
        header_check(backup)
    except OSError as error:
        raise BackupError(f"cannot be read: {error.strerror}") from error
    size, free = (
        backup.stat().st_size,
        shutil.disk_usage(place.parent).free if place.parent.is_dir() else None,
    )
    if free is not None and size > free:
        raise BackupError(f"has {size} bytes, but the disk of {place} has only {free} bytes free")


def _copied(backup: Path, copy: Path) -> None:
    """Copies the backup, readable only by this user, and checks the copy."""
    try:
        copy.unlink(missing_ok=True)
        copy.touch(0o600, exist_ok=False)
        shutil.copyfile(backup, copy)
    except OSError as error:
        raise CommandError(
            f"{copy} cannot be written: {error.strerror}. Nothing was changed."
        ) from error
    backup_check(copy)


def _kept(place: Path, kept: Path) -> None:
    try:
        kept.unlink(missing_ok=True)
        os.link(place, kept)
    except OSError as error:
        raise CommandError(
            f"{place} cannot be moved to {kept}: {error.strerror}. Nothing was changed."
        ) from error


def _closed(place: Path, wait: float) -> None:
    """Merges the write-ahead log into the database file, which requires that no other process has
    the file open."""
    deadline = time.monotonic() + wait
    while True:
        try:
            with closing(sqlite3.connect(place, timeout=0.1, isolation_level=None)) as last:
                last.execute("PRAGMA journal_mode = DELETE")
            return
        except sqlite3.DatabaseError as error:
            if "locked" not in str(error):
                break  # the database is damaged, which may be the reason for the restore
        if time.monotonic() >= deadline:
            raise CommandError(
                "The database is in use: stop the dashboard and every other process that has it "
                "open. Nothing was changed."
            )
        time.sleep(0.1)
    for left in ("-wal", "-shm", "-journal"):
        place.with_name(place.name + left).unlink(missing_ok=True)
