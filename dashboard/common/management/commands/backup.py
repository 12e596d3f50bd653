"""Backup command: `manage.py backup PATH` copies the SQLite database while it is in use. For
PostgreSQL, use pg_dump."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from dashboard.common.backups import BackupError, integrity_check


class Command(BaseCommand):
    """Copies through the backup API of SQLite, which reads one consistent snapshot."""

    help = "Copies the SQLite database to a new file while the dashboard runs."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="the file to create; it must not exist yet")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError(
                "This database is PostgreSQL: back it up with pg_dump "
                "(dashboard/docs/operations/backup.md)."
            )
        path: Path = options["path"]
        if path.exists():
            raise CommandError(
                f"{path} already exists; a backup never overwrites a file. Choose another path."
            )
        place = Path(connection.settings_dict["NAME"])
        if not place.is_file():
            raise CommandError(f"There is no database at {place} yet.")
        unfinished = path.with_name(f"{path.name}.unfinished")
        try:
            unfinished.unlink(missing_ok=True)
            _copy(place, unfinished)
            unfinished.rename(path)
        except BackupError as error:
            unfinished.unlink(missing_ok=True)
            raise CommandError(f"The copy of {place} {error}. No backup was created.") from error
        except (OSError, sqlite3.Error) as error:
            unfinished.unlink(missing_ok=True)
            raise CommandError(
                f"cannot back up {place} to {path}: {getattr(error, 'strerror', None) or error}."
            ) from error
        self.stdout.write(f"{path}: {path.stat().st_size} bytes, checked")


def _copy(place: Path, unfinished: Path) -> None:
    """Copies a snapshot of the database and checks the copy."""
    with (
        closing(sqlite3.connect(place, timeout=60)) as here,
        closing(sqlite3.connect(unfinished)) as copy,
    ):
        unfinished.chmod(0o600)
        here.backup(copy)
        integrity_check(copy)
