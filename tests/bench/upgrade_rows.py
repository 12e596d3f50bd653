"""Rows of an earlier release's database: PostgreSQL fills each table with the requested number of
rows."""

from __future__ import annotations

import psycopg

VALUES = {
    "boolean": "false", "jsonb": "'{}'", "bytea": "''", "timestamp with time zone": "now()", "character varying": "''", "text": "''",
}  # fmt: skip
"""The value of a required column; numbers are 1."""
INSTANCES = 200_000
DAYS = 8
IDENTITY = "jsonb_build_object('pid', n % 30000 + 1, 'host', 'gpu-' || n % 500, 'python', repeat('x', 400))"
SHARES = {
    "process_minute": 0.40, "region_minute": 0.24, "version_process_minute": 0.14, "version_minute": 0.08, "compile_event": 0.06,
    "instance": 0.04, "version_process_hour": 0.02, "version_hour": 0.02,
}  # fmt: skip
"""Share of each table in all rows; a migration changes columns mostly in these tables."""


def keys_of(project: int, model: int, version: int, today: int) -> dict[str, dict[str, str]]:
    """The expressions for columns that differ by row `n`, by table."""
    day, owner = f"{today} - n % {DAYS}", f"mod(n / 1400, {INSTANCES}) + 1"
    minute = f"({today} - n % {DAYS}) * 1440 + n / {DAYS} % 175"
    base, of_version = (
        {"project_id": str(project), "day": day},
        {"version_id": str(version), "environment": "'e' || n / 11520"},
    )
    return {
        "instance": {
            "project_id": str(project), "model_id": str(model), "version_id": str(version), "instance_id": "lpad(n::text, 26, '0')",
            "environment": "'production'", "identity": IDENTITY, "first_minute": str(today * 1440),
        },
        "process_minute": {**base, "instance_id": owner, "minute": minute},
        "region_minute": {**base, "instance_id": owner, "series_id": "1", "minute": minute, "latency": "decode(repeat('ab', 150), 'hex')"},
        "version_minute": {**base, "series_id": "n / 1400 + 1", "minute": minute, "latency": "decode(repeat('ab', 150), 'hex')"},
        "version_hour": {**base, "series_id": "n / 192 + 1", "hour": f"({today} - n % {DAYS}) * 24 + n / {DAYS} % 24"},
        "version_process_minute": {**base, **of_version, "gpu_type": "''", "minute": f"({today} - n % {DAYS}) * 1440 + n / {DAYS} % 1440"},
        "version_process_hour": {**base, **of_version, "gpu_type": "''", "hour": f"({today} - n % {DAYS}) * 24 + n / {DAYS} % 24"},
        "compile_event": {**base, "instance_id": f"n % {INSTANCES} + 1", "seq": f"n / {INSTANCES} + 1", "number": "1", "version_id": "1"},
    }  # fmt: skip


def columns_filled(
    connection: psycopg.Connection, table: str, given: dict[str, str]
) -> dict[str, str]:
    """Every required column, with the expression for its value."""
    found = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s AND is_nullable = 'NO'"
        " AND column_default IS NULL AND is_identity = 'NO' ORDER BY ordinal_position",
        [table],
    ).fetchall()
    return {name: VALUES.get(kind, "1") for name, kind in found} | given


def table_fill(
    connection: psycopg.Connection, table: str, count: int, given: dict[str, str]
) -> None:
    """Inserts this number of rows, numbered from 0."""
    filled = columns_filled(connection, table, given)
    connection.execute(
        f'INSERT INTO "{table}" ({", ".join(filled)}) SELECT {", ".join(filled.values())} FROM generate_series(0, {count - 1}) AS n'
        " ON CONFLICT DO NOTHING".encode()
    )
