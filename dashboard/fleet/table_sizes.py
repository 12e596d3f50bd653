"""Table sizes: bytes of each table, and bytes per day of an instance or a version."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from dashboard.fleet.models import (
    CompileEvent,
    ProcessMinute,
    RegionMinute,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
)

ENTITY_TABLES = {
    "instance": (
        "SELECT DISTINCT instance_id, minute FROM process_minute",
        1,
        (RegionMinute, ProcessMinute, CompileEvent),
    ),
    "version": (
        "SELECT DISTINCT version_id, minute FROM version_process_minute",
        1,
        (VersionMinute, VersionProcessMinute),
    ),
    "version, hourly": (
        "SELECT DISTINCT version_id, hour FROM version_process_hour",
        60,
        (VersionHour, VersionProcessHour),
    ),
}
"""By kind of entity: query of its observed slots, minutes per slot, and its tables."""

MINUTES_A_DAY = 1440
GOAL_BYTES_A_DAY = {"instance": 1 << 20, "version": 4 << 20}
"""Goals in bytes per day: of an instance, and of a version with its minutes and hours."""


@dataclass(frozen=True)
class TableSize:
    """One table with its indexes and all partitions.

    `minutes` is the observed time of the entities `of`, in entity minutes.
    """

    name: str
    rows: int
    bytes: int
    of: str = ""
    minutes: int = 0

    @property
    def bytes_a_day(self) -> float | None:
        """Bytes per day of one instance or version; None without data."""
        return self.bytes / self.minutes * MINUTES_A_DAY if self.minutes else None


def read_table_sizes() -> list[TableSize]:
    """Return every table of the database, the largest first."""
    minutes = {
        of: _count_rows(f"({query}) AS seen") * unit
        for of, (query, unit, _) in ENTITY_TABLES.items()
    }
    owners = {
        model._meta.db_table: of for of, (_, _, models) in ENTITY_TABLES.items() for model in models
    }
    found = []
    for name, size in _read_bytes().items():
        of = owners.get(name, "")
        found.append(TableSize(name, _count_rows(f'"{name}"'), size, of, minutes.get(of, 0)))
    return sorted(found, key=lambda table: (-table.bytes, table.name))


def sum_bytes_a_day(tables: list[TableSize], of: str) -> float | None:
    """Return the bytes per day of one instance or version over all its tables; None without
    data."""
    known: list[float] = [
        size
        for table in tables
        if table.of.startswith(of) and (size := table.bytes_a_day) is not None
    ]
    return sum(known) if known else None


def find_fewest_minutes(tables: list[TableSize], of: str) -> int:
    """Return the observed minutes of instances or versions; the smallest value if tables differ."""
    return min(
        (table.minutes for table in tables if table.of.startswith(of) and table.minutes), default=0
    )


def read_database_bytes() -> int:
    """Return the bytes of the database; on SQLite of its file, including free pages."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            )
        return int(cursor.fetchone()[0])


def _count_rows(rows: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {rows}")
        return int(cursor.fetchone()[0])


def _read_bytes() -> dict[str, int]:
    """Return the bytes by table with indexes; partitions count for their table."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT coalesce(parent.relname, own.relname), "
                "sum(pg_total_relation_size(own.oid)) FROM pg_class own"
                " LEFT JOIN pg_inherits ON inhrelid = own.oid LEFT JOIN pg_class parent ON "
                "parent.oid = inhparent"
                " WHERE own.relkind = 'r' AND own.relnamespace = "
                "current_schema()::regnamespace GROUP BY 1"
            )
        else:
            cursor.execute(
                "SELECT schema.tbl_name, sum(stat.pgsize) FROM dbstat AS stat JOIN "
                "sqlite_schema AS schema ON schema.name = stat.name"
                " WHERE stat.aggregate = TRUE GROUP BY 1"
            )
        return {str(name): int(size) for name, size in cursor.fetchall()}
