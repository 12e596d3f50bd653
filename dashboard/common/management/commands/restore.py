"""`manage.py restore PATH`: puts a backup in the place of the SQLite database; PostgreSQL has pg_restore."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection


class Command(BaseCommand):
    """A file that is put under an open connection leaves it, and whoever opens it next, with the log of another database."""

    help = "Puts a backup in the place of the SQLite database, which nothing may have open. What was there is kept beside it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="what `manage.py backup` made")
        parser.add_argument("--wait", type=float, default=10.0, metavar="SECONDS", help="for whoever still has it open (default 10)")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("This database is PostgreSQL: restore it with pg_restore (docker/README.md).")
        place = Path(connection.settings_dict["NAME"])
        copy, kept = place.with_name(f"{place.name}.restoring"), place.with_name(f"{place.name}.before-restore")
        _copied(options["path"], copy)
        if place.exists():
            _closed(place, options["wait"])
            kept.unlink(missing_ok=True)
            os.link(place, kept)
        copy.replace(place)
        self.stdout.write(f"{place}: restored from {options['path']}" + (f"; what was there is in {kept}" if kept.exists() else ""))


def _copied(backup: Path, copy: Path) -> None:
    """A checked copy that belongs to this user alone."""
    if not backup.is_file():
        raise CommandError(f"There is no backup {backup}.")
    try:
        copy.unlink(missing_ok=True)
        copy.touch(0o600)
        shutil.copyfile(backup, copy)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise CommandError(f"{copy} cannot be written: {error.strerror}. Nothing was changed.") from error
    try:
        with closing(sqlite3.connect(copy)) as opened:
            [(verdict,)] = opened.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        copy.unlink()
        raise CommandError(f"{backup} is damaged: {verdict}. Nothing was changed.")


def _closed(place: Path, wait: float) -> None:
    """Takes the log of what is there into its file, which works only for the last who has it open."""
    deadline = time.monotonic() + wait
    while True:
        try:
            with closing(sqlite3.connect(place, timeout=0.1, isolation_level=None)) as last:
                last.execute("PRAGMA journal_mode = DELETE")
            return
        except sqlite3.DatabaseError as error:
            if "locked" not in str(error):
                break  # it is damaged, which may be why it is replaced
        if time.monotonic() >= deadline:
            raise CommandError("The database is in use: stop the dashboard, and whatever else has it open. Nothing was changed.")
        time.sleep(0.1)
    for left in ("-wal", "-shm", "-journal"):
        place.with_name(place.name + left).unlink(missing_ok=True)
