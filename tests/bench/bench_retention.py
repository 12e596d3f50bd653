"""Storage per day, and lock time while old rows are dropped: `python -m
tests.bench.bench_retention`.

Folds some hours of the demo fleet and prints `manage.py storage`; then creates expired rows and
drops them in slices."""

from __future__ import annotations

import argparse
import os
import sys
import time

import tests.environment  # noqa: F401  # settings must be in place before Django reads them


def fill(hours: int) -> int:
    """Folds reports of the demo fleet with one window per minute, as the fleet sends its history;
    returns the number of reports."""
    from compilewatch.wire.codec import dumps
    from compilewatch.wire.messages import VERSION, Request

    from dashboard.demo.sender import batch_reports, build_past_reports
    from dashboard.demo.simulated_fleet import build_fleet, build_instances
    from dashboard.fleet.fold_service import fold_all
    from dashboard.ingest.batch import batch_read
    from dashboard.ingest.services import reports_store
    from dashboard.projects.services import project_create

    project, start, count = project_create(name="Bench", slug="bench"), int(time.time() // 60), 0
    for instance in build_instances(build_fleet(judged_minutes=60), start_minute=start):
        instance.first_minute = max(instance.first_minute, start - hours * 60)
        for reports in batch_reports(build_past_reports(instance, start_minute=start)):
            request = Request(VERSION, time.time(), instance.identity, reports)
            reports_store(
                [batch_read(text=dumps(request), project_id=project.pk, received=time.time())]
            )
            count += len(reports)
        fold_all()
    return count


def drop(days: int) -> None:
    """Copies every minute of an instance to a number of older days, and drops the copies while
    another project keeps its rows."""
    from django.db import connection

    from dashboard.common.write_lock import write_transaction
    from dashboard.fleet.models import RegionMinute
    from dashboard.fleet.retention import retention_run
    from dashboard.projects.services import project_create, retention_set

    retention_set(
        project=project_create(name="Longer", slug="longer"),
        changes={"instance_minutes": 90},
        actor_name="bench",
    )
    columns = [field.column for field in RegionMinute._meta.concrete_fields if field.column]
    with connection.cursor() as cursor:
        for day in range(10, 10 + days):
            wanted = ", ".join(
                f"day - {day}"
                if name == "day"
                else f"minute - {day * 1440}"
                if name == "minute"
                else name
                for name in columns
            )
            today = f"day >= {int(time.time() // 86400) - 2}"
            with write_transaction():
                cursor.execute(
                    f"INSERT INTO region_minute ({', '.join(columns)}) SELECT {wanted} "
                    f"FROM region_minute WHERE {today}"
                )
    began = time.perf_counter()
    dropped = retention_run(seconds=600)
    seconds = time.perf_counter() - began
    print(
        f"{connection.vendor}: {dropped.rows} rows dropped in {seconds:.1f} s, "
        f"{dropped.rows / seconds:.0f} rows/s;"
        f" longest lock time of a slice {dropped.longest_hold * 1e3:.0f} ms"
    )


def main() -> None:
    """Creates a database and drops it at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--days", type=int, default=20, help="number of old days to drop")
    options = parser.parse_args()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    database = connection.settings_dict
    if connection.vendor == "sqlite":
        database["TEST"]["NAME"] = f"{database['NAME']}.bench"
    name = database["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        print(f"{connection.vendor}: {fill(options.hours)} reports of {options.hours} h")
        call_command("storage", stdout=sys.stdout)
        drop(options.days)
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


if __name__ == "__main__":
    main()
