"""`manage.py backup PATH`: a copy of the SQLite database while it is in use; PostgreSQL has pg_dump."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection


class Command(BaseCommand):
    """Copies through SQLite's own backup, which sees one moment of a database that others write to."""

    help = "Copies the SQLite database to a new file while the dashboard runs."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="the file to make; it must not exist yet")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("This database is PostgreSQL: back it up with pg_dump (docker/README.md).")
        path: Path = options["path"]
        if path.exists():
            raise CommandError(f"{path} exists already; a backup never overwrites another.")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=60)) as here, closing(sqlite3.connect(unfinished)) as copy:
            unfinished.chmod(0o600)
            here.backup(copy)
            [(verdict,)] = copy.execute("PRAGMA integrity_check").fetchall()
            if verdict != "ok":
                raise CommandError(f"The copy is damaged: {verdict}.")
        unfinished.rename(path)
        self.stdout.write(f"{path}: {path.stat().st_size} bytes, checked")
