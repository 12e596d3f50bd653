"""`manage.py storage`: prints table sizes, and bytes per day of an instance and of a version."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from dashboard.fleet.table_sizes import (
    GOAL_BYTES_A_DAY,
    MINUTES_A_DAY,
    find_fewest_minutes,
    read_database_bytes,
    read_table_sizes,
    sum_bytes_a_day,
)

KIB = 1024


class Command(BaseCommand):
    """Prints one line per table, the largest first."""

    help = (
        "Says how large each table is, and how much of it a day of one instance or one version "
        "takes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the option for tables without rows."""
        parser.add_argument("--all", action="store_true", help="tables without rows, too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the size of every table and print the report."""
        try:
            tables = read_table_sizes()
        except DatabaseError as error:
            if connection.vendor == "sqlite" and "dbstat" in str(error):
                raise CommandError(
                    "This SQLite was built without dbstat: it does not know the size of a table."
                ) from error
            raise
        self.stdout.write(f"{'table':<28}{'rows':>12}{'KiB':>12}{'bytes a row':>13}   a day takes")
        for table in tables:
            if table.rows or options["all"]:
                a_row = f"{table.bytes / table.rows:,.0f}" if table.rows else ""
                day = table.bytes_a_day
                said = f"{day / KIB:,.0f} KiB of one {table.of}" if day is not None else ""
                size = f"{table.bytes / KIB:>12,.0f}"
                row = f"{table.name:<28}{table.rows:>12,}{size}{a_row:>13}   {said}"
                self.stdout.write(row.rstrip())
        rows, kib = sum(table.rows for table in tables), read_database_bytes() / KIB
        self.stdout.write(f"{'the whole database':<28}{rows:>12,}{kib:>12,.0f}")
        for of, goal in GOAL_BYTES_A_DAY.items():
            day, minutes = sum_bytes_a_day(tables, of), find_fewest_minutes(tables, of)
            said = (
                f"{day / KIB:,.0f} KiB, reckoned from {minutes:,} minutes"
                if day is not None
                else "not known: nothing was seen yet"
            )
            said += (
                ", too high as long as that is no whole day, for new tables are mostly empty"
                if 0 < minutes < MINUTES_A_DAY
                else ""
            )
            self.stdout.write(f"a day of one {of}: {said} (goal: at most {goal / KIB:,.0f} KiB)")
