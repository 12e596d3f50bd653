"""A writer and a reader of an earlier release that run while the database is migrated, with the
duration of each of their statements."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.bench.upgrade_rows import DAYS, INSTANCES, columns_filled

PAUSE_SECONDS = 0.005
Statement = tuple[str, str, dict[str, str]]


@dataclass
class Load:
    """Repeats its statements until it is stopped; `took` holds start, name and seconds of each."""

    address: Mapping[str, Any]
    statements: dict[str, str]
    today: int
    took: list[tuple[float, str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the load."""
        self._over.set()
        self._thread.join(60)

    def since(self, began: float) -> list[tuple[float, str]]:
        """Seconds and names of the statements that started since then, longest first."""
        return sorted(
            ((seconds, name) for at, name, seconds in self.took if at >= began), reverse=True
        )

    def _run(self) -> None:
        chance = random.Random(1)
        with psycopg.connect(autocommit=True, prepare_threshold=None, **self.address) as connection:
            while not self._over.wait(PAUSE_SECONDS):
                for name, statement in self.statements.items():
                    day = self.today - chance.randrange(DAYS)
                    given = {
                        "instance": chance.randrange(1000) + 1, "day": day, "minute": day * 1440 + chance.randrange(175), "hour": day * 24,
                        "new": chance.randrange(1 << 60), "any": chance.randrange(INSTANCES) + 1,
                    }  # fmt: skip
                    began = time.monotonic()
                    try:
                        connection.execute(statement.encode(), given)
                    except psycopg.Error as error:
                        self.errors.append(f"{name}: {error}".strip())
                    self.took.append((began, name, time.monotonic() - began))


def writes(
    connection: psycopg.Connection, project: int, model: int, version: int
) -> dict[str, str]:
    """The statements of the earlier release, with its columns: new rows, and updates of existing
    rows."""
    minute = {"project_id": str(project), "day": "%(day)s", "minute": "%(minute)s"}
    of_version = {**minute, "version_id": str(version), "environment": "'e1'", "gpu_type": "''"}
    hour = {name: value for name, value in of_version.items() if name != "minute"} | {
        "hour": "%(hour)s"
    }
    tables = {
        "process_minute": ({**minute, "instance_id": "%(instance)s"}, "windows"),
        "region_minute": ({**minute, "instance_id": "%(instance)s", "series_id": "1"}, "calls"),
        "version_process_minute": (of_version, "windows"),
        "version_process_hour": (hour, "windows"),
        "compile_event": (
            {
                **minute,
                "instance_id": "%(any)s",
                "seq": "%(new)s",
                "number": "1",
                "version_id": str(version),
            },
            "",
        ),
    }
    found = {}
    for table, (given, added) in tables.items():
        keys = (
            dict(given)
            if table != "compile_event"
            else {name: value for name, value in given.items() if name != "minute"}
        )
        filled = columns_filled(connection, table, keys)
        key = ", ".join(name for name in keys if name != "version_id" or table != "compile_event")
        then = f"UPDATE SET {added} = {table}.{added} + 1" if added else "NOTHING"
        found[table] = (
            f"INSERT INTO {table} ({', '.join(filled)}) VALUES ({', '.join(filled.values())}) ON CONFLICT ({key}) DO {then}"
        )
    known = {
        "project_id": str(project),
        "model_id": str(model),
        "version_id": str(version),
        "instance_id": "left(md5(%(new)s::text), 26)",
    }
    filled = columns_filled(connection, "instance", {**known, "environment": "'production'"})
    found["instance"] = (
        f"INSERT INTO instance ({', '.join(filled)}) VALUES ({', '.join(filled.values())})"
    )
    found["instance again"] = "UPDATE instance SET last_seq = last_seq + 1 WHERE id = %(any)s"
    return found


READS = {
    "minutes": "SELECT sum(windows) FROM process_minute WHERE day = %(day)s AND instance_id = %(instance)s AND project_id > 0",
    "instances": "SELECT host, first_minute FROM instance WHERE id = %(any)s",
    "regions": "SELECT sum(calls) FROM region_minute WHERE series_id = 1 AND minute = %(minute)s AND instance_id = %(instance)s",
    "hours": "SELECT sum(compiles) FROM version_process_hour WHERE day = %(day)s AND environment = 'e1'",
}
"""The queries of its pages."""
