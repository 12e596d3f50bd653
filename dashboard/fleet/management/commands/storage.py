"""`manage.py storage`: prints table sizes, and bytes per day of an instance and of a version."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connection

from dashboard.common.management.operator_command import OperatorCommand
from dashboard.fleet.table_sizes import (
    GOAL_BYTES_A_DAY,
    MINUTES_A_DAY,
    find_fewest_minutes,
    read_database_bytes,
    read_table_sizes,
    sum_bytes_a_day,
)

KIB = 1024


class Command(OperatorCommand):
    """Prints one line per table, the largest first."""

    help = (
        "Prints the size of each table, and the bytes per day of one instance and of one version."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the option for tables without rows."""
        parser.add_argument("--all", action="store_true", help="include tables without rows")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the size of every table and print the report."""
        try:
            tables = read_table_sizes()
        except DatabaseError as error:
            if connection.vendor == "sqlite" and "dbstat" in str(error):
                raise CommandError(
                    "This SQLite was built without dbstat, so table sizes are unavailable. "
                    "Use an SQLite with dbstat, or PostgreSQL."
                ) from error
            raise
        self.stdout.write(f"{'table':<28}{'rows':>12}{'KiB':>12}{'bytes/row':>13} per day")
        for table in tables:
            if table.rows or options["all"]:
                a_row = f"{table.bytes / table.rows:,.0f}" if table.rows else ""
                day = table.bytes_a_day
                said = f"{day / KIB:,.0f} KiB per {table.of}" if day is not None else ""
                size = f"{table.bytes / KIB:>12,.0f}"
                row = f"{table.name:<28}{table.rows:>12,}{size}{a_row:>13}   {said}"
                self.stdout.write(row.rstrip())
        rows, kib = sum(table.rows for table in tables), read_database_bytes() / KIB
        self.stdout.write(f"{'the whole database':<28}{rows:>12,}{kib:>12,.0f}")
        for of, goal in GOAL_BYTES_A_DAY.items():
            day, minutes = sum_bytes_a_day(tables, of), find_fewest_minutes(tables, of)
            said = (
                f"{day / KIB:,.0f} KiB, extrapolated from {minutes:,} minutes"
                if day is not None
                else "unknown: no data yet"
            )
            said += (
                ", too high until a whole day is stored, because new tables are mostly empty"
                if 0 < minutes < MINUTES_A_DAY
                else ""
            )
            self.stdout.write(f"per day and {of}: {said} (goal: at most {goal / KIB:,.0f} KiB)")
