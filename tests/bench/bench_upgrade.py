"""Blocking during an upgrade: migrates a PostgreSQL database of an earlier release with millions of
rows while a writer and a reader of that release continue: `python -m tests.services python -m
tests.bench.bench_upgrade --rows 5000000`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from tests.bench.table import Row, show
from tests.bench.upgrade_load import READS, Load, writes
from tests.bench.upgrade_rows import SHARES, keys_of, table_fill
from tests.faults.cluster import Cluster
from tests.flow.stack import Stack

EARLIER = (
    ("fleet", "0015"),
    ("ingest", "0005"),
    ("accounts", ""),
    ("alerts", ""),
    ("common", ""),
    ("projects", ""),
    ("regressions", ""),
)
"""The last migration of each app in the earlier release. An empty name means all migrations, since
the app has no newer ones."""
FORWARD = (("fleet", "0016"), ("fleet", "0018"), ("fleet", "0019"), ("fleet", "0020"), ("", ""))
BACK = (("fleet", "0019"),)
LIMIT_MILLISECONDS, QUIET_SECONDS = 200.0, 5.0
PARTITIONS = (
    "from dashboard.fleet.partitions import partitions_ensure; partitions_ensure(today={today})"
)


def database_make(stack: Stack, rows: int, today: int) -> tuple[int, int, int]:
    """The schema of the earlier release with this number of rows; returns its project, model and
    version."""
    for app, name in EARLIER:
        stack.manage("migrate", app, *([name] if name else []), "--verbosity=0")
    stack.manage("shell", "-v", "0", "-c", PARTITIONS.format(today=today))
    stack.manage("setup_project", "--name", "Flow", "--user", "ada")
    with psycopg.connect(dbname=stack.name, autocommit=True, **stack.server) as connection:
        [(project,)] = connection.execute("SELECT id FROM project").fetchall()
        table_fill(connection, "model", 1, {"project_id": str(project), "name": "'faults'"})
        table_fill(
            connection,
            "model_version",
            1,
            {"project_id": str(project), "model_id": "(SELECT id FROM model)", "name": "'1'"},
        )
        [(model, version)] = connection.execute("SELECT model_id, id FROM model_version").fetchall()
        for table, given in keys_of(project, model, version, today).items():
            began = time.monotonic()
            table_fill(connection, table, int(rows * SHARES[table]), given)
            [(count,)] = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()
            print(f"{table}: {count:,} rows in {time.monotonic() - began:.0f} s", flush=True)
        connection.execute("VACUUM ANALYZE")
    return project, model, version


def step(stack: Stack, loads: dict[str, Load], name: str, words: tuple[str, ...]) -> list[Row]:
    """Runs one migration, or pauses if there are no words; reports the longest statement of each
    load."""
    began = time.monotonic()
    if name == "without a migration":
        time.sleep(QUIET_SECONDS)
    else:
        stack.manage("migrate", *words, "--verbosity=0")
    took, found = time.monotonic() - began, []
    for role, load in loads.items():
        longest = load.since(began)
        late = sum(seconds * 1000 > LIMIT_MILLISECONDS for seconds, _ in longest)
        print(f"{name} ({took:.1f} s), {role}: {len(longest)} statements, {late} over {LIMIT_MILLISECONDS:.0f} ms, the longest"
              f" {', '.join(f'{seconds * 1000:.0f} ms {what}' for seconds, what in longest[:4])}", flush=True)  # fmt: skip
        found.append(
            Row(
                f"{name}: the {role}'s longest statement",
                "ms",
                longest[0][0] * 1000,
                goal=LIMIT_MILLISECONDS,
            )
        )
    return found


def main() -> int:
    """1 if a statement waited longer than the limit or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    cluster, today = Cluster(), int(time.time() // 86400)
    cluster.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            stack = Stack(
                database="postgresql",
                folder=Path(folder),
                outbound="127.0.0.1:9",
                server=cluster.address,
            )
            known = database_make(stack, options.rows, today)
            address = {"dbname": stack.name, **stack.server}
            with psycopg.connect(**address) as connection:
                statements = writes(connection, *known)
            loads = {
                "writer": Load(address, statements, today),
                "reader": Load(address, READS, today),
            }
            rows = step(stack, loads, "without a migration", ())
            for way, steps in (("forward", FORWARD), ("back", BACK)):
                for app, name in steps:
                    rows += step(
                        stack,
                        loads,
                        f"{way} {app} {name}".strip(),
                        tuple(word for word in (app, name) if word),
                    )
            for load in loads.values():
                load.stop()
    finally:
        cluster.close()
    errors = [error for load in loads.values() for error in load.errors]
    print(f"{len(errors)} errors", *errors[:5], sep="\n")
    return show(rows) or bool(errors)


if __name__ == "__main__":
    sys.exit(main())
