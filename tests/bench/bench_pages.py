"""Response time of pages on a long history: `python -m tests.bench.bench_pages --models 60` with
PostgreSQL.

60 models of 20 versions over 400 days, two GPU types each, a thousand instances: about 6 million
aggregated rows, created inside the database. Requests every page in turn. The table shows the 95th
percentile, the processor time (which depends less on other load), the number of queries and the
compressed bytes. Then Chromium opens each page with an empty cache and measures the time until the
page is usable, the time until charts are drawn, and the bytes on the wire including scripts and
styles; `--no-browser` skips this part. `--keep` keeps the history for the next run. Requires
PostgreSQL at PGHOST and PGPORT with a PGUSER that may create databases; does not use Redis."""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

# The database creates the history; SQLite has no series of numbers.
os.environ.setdefault("COMPILEWATCH_TEST_DATABASE", "postgresql")

import tests.environment  # noqa: F401  # settings must be in place before Django reads them
from tests.bench.page_browser import opened
from tests.bench.table import Row, show

VERSIONS, DAYS, HOURS_EACH, MINUTE_DAYS = 20, 400, 20 * 24, 8
GOALS = {"fleet": 0.100, "model, 24 h": 0.150, "model, 30 d": 0.150, "compare": 0.250}


def catalogue(models: int, instances: int) -> Any:
    """The first model with one row in every table as a template, and the other models without rows;
    returns the project and the first model."""
    from dashboard.common import clock
    from dashboard.fleet.models import Instance, Stratum, WatchedModel
    from dashboard.projects.services import project_create
    from tests.dashboard.ui.charts_factory import Plan, charted

    project, now = project_create(name="Bench", slug="bench"), clock.now()
    made = charted(project, Plan("source", start=30), name="source")
    strata, source = (
        list(Stratum.objects.filter(project=project)),
        Instance.objects.filter(model=made.model)[0],
    )
    for number in range(models):
        model = WatchedModel.objects.create(
            project=project, name=f"model-{number:02d}", first_seen_at=now, last_seen_at=now
        )
        for place in range(VERSIONS):
            _version(model, place, strata, source, max(1, instances // (2 * models)))
    return project, model


def _version(model: Any, place: int, strata: list[Any], source: Any, instances: int) -> None:
    from dashboard.common import clock
    from dashboard.fleet.models import Deployment, ModelVersion, Series

    now, minute = clock.now(), int(time.time() // 60)
    common = {"project": model.project, "environment": "production"}
    last = minute - 1 - (VERSIONS - 1 - place) // 2 * (DAYS // VERSIONS * 2) * 1440
    first, live = max(last - HOURS_EACH * 60, minute - DAYS * 1440), place >= VERSIONS - 2
    version = ModelVersion.objects.create(
        project=model.project,
        model=model,
        name=f"2026.{place}",
        first_seen_at=now,
        last_seen_at=now,
        last_minute=last,
        revision=1,
    )
    Deployment.objects.create(
        **common,
        model=model,
        version=version,
        started_minute=first,
        last_minute=last,
        ended_minute=None if live else last,
    )
    for stratum in strata:
        Series.objects.create(
            **common,
            version=version,
            stratum=stratum,
            region="score_batch",
            bucket="2^8",
            last_minute=last,
        )
    for rank in range(instances if live else 0):
        source.pk, source.model, source.version = None, model, version
        source.instance_id, source.last_seen_at = (
            f"{version.pk:06d}{rank:020d}",
            now - timedelta(seconds=5),
        )
        source.save(force_insert=True)


def rows_made(project_id: int) -> int:
    """Copies one row of each table to every series or version and every hour or minute in which it
    was live; returns the number of rows."""
    from django.db import connection

    from dashboard.fleet.models import (
        VersionHour,
        VersionMinute,
        VersionProcessHour,
        VersionProcessMinute,
    )
    from dashboard.fleet.partitions import partitions_make

    today = int(time.time() // 86400)
    partitions_make(days=range(today - MINUTE_DAYS - 1, today + 1))
    total = 0
    for table, slot, per_day, who in (
        (VersionHour, "hour", 24, "series_id"),
        (VersionProcessHour, "hour", 24, "version_id"),
        (VersionMinute, "minute", 1440, "series_id"),
        (VersionProcessMinute, "minute", 1440, "version_id"),
    ):
        name = table._meta.db_table
        columns = [
            field.column
            for field in table._meta.concrete_fields
            if field.column and field.column != "id"
        ]
        changed = {slot: "g", "day": f"g / {per_day}", who: "w.id"}
        owner = "version s" if who == "version_id" else "series s"
        version = "s.id" if who == "version_id" else "s.version_id"
        begin = (
            f"GREATEST(d.started_minute, {(today - MINUTE_DAYS) * 1440 if slot == 'minute' else 0})"
        )
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE one AS SELECT * FROM {name} LIMIT 1")
            cursor.execute(f"DELETE FROM {name}")
            cursor.execute(
                f"INSERT INTO {name} ({', '.join(columns)}) SELECT "
                f"{', '.join(changed.get(c, 't.' + c) for c in columns)} FROM one t, "
                f"(SELECT s.id, {begin} / {1440 // per_day} AS first, d.last_minute / "
                f"{1440 // per_day} AS last FROM {_table(owner)} "
                f"JOIN {_deployment()} d ON d.version_id = {version} WHERE d.project_id = "
                f"%s AND d.last_minute > {begin}) w, "
                "generate_series(w.first, w.last) g",
                [project_id],
            )
            total += cursor.rowcount
            cursor.execute("DROP TABLE one")
            cursor.execute(f"ANALYZE {name}")
    return total


def _table(owner: str) -> str:
    from dashboard.fleet.models import ModelVersion, Series

    table = ModelVersion if owner.startswith("version") else Series
    return f"{table._meta.db_table} s"


def _deployment() -> str:
    from dashboard.fleet.models import Deployment

    return Deployment._meta.db_table


@dataclass(frozen=True)
class Cost:
    """Cost of one page: seconds at the 95th percentile, processor seconds here and in the database,
    queries, compressed bytes."""

    p95: float
    python: float
    database: float
    queries: int
    size: int


def database_seconds() -> float:
    """Processor time of the database process behind this connection; 0 if the database runs on
    another machine."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        stat = Path(f"/proc/{cursor.fetchone()[0]}/stat")
    if not stat.exists():
        return 0.0
    spent = stat.read_text().rpartition(")")[2].split()
    return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")


def asked(client: Any, address: str, times: int) -> Cost:
    """Requests the page once to count queries, then `times` times."""
    from django.db import connection

    from dashboard.common.gc_tuning import tune_garbage_collection

    count = []

    def counted(execute: Any, *given: Any) -> Any:
        count.append(1)
        return execute(*given)

    with connection.execute_wrapper(counted):
        answer = client.get(address)
    # As the web process does after loading; here the pages before this one loaded more.
    tune_garbage_collection()
    assert answer.status_code == 200, (address, answer.status_code)
    took, python, database = [], time.process_time(), database_seconds()
    for _ in range(times):
        began = time.perf_counter()
        client.get(address)
        took.append(time.perf_counter() - began)
    python, database = (
        (time.process_time() - python) / times,
        (database_seconds() - database) / times,
    )
    return Cost(
        statistics.quantiles(took, n=20)[-1],
        python,
        database,
        len(count),
        len(gzip.compress(answer.content, 6)),
    )


def measure_pages(project: Any, model: Any, times: int, *, browser: bool) -> list[Row]:
    """Requests every page as an administrator: first the server alone, then in a browser."""
    from django.test import Client

    from dashboard.accounts.models import User
    from dashboard.accounts.services import user_create
    from dashboard.projects.models import Role
    from dashboard.projects.services import member_add

    user = User.objects.filter(username="bench").first()
    if user is None:
        user = user_create(username="bench", password="a long enough password")
        member_add(project=project, user=user, role=Role.ADMIN)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    page, figures = f"/p/bench/models/{model.pk}/", []
    pages = {
        "fleet": "/p/bench/",
        "model, 24 h": f"{page}?range=24h",
        "model, 30 d": f"{page}?range=30d",
        "model, 400 d": f"{page}?from=2000-01-01",
        "compare": f"{page}compare",
        "search": "/p/bench/search/?q=model",
        "findings": "/p/bench/findings/",
    }
    for what, address in pages.items():
        cost = asked(client, address, times)
        print(
            f"{what:14} p95 {cost.p95 * 1e3:6.0f} ms, processor {cost.python * 1e3:5.0f} "
            f"ms here and {cost.database * 1e3:5.0f} ms in the "
            f"database, {cost.queries:3} queries, {cost.size / 1000:5.1f} kB compressed",
            flush=True,
        )
        figures.append(
            Row(
                f"page {what}, p95",
                "ms",
                cost.p95 * 1e3,
                goal=GOALS[what] * 1e3 if what in GOALS else None,
            )
        )
    return figures + (opened(pages, client.cookies) if browser else [])


def history(options: argparse.Namespace) -> tuple[Any, Any]:
    """The project and one of its models: created, or reused from an earlier run."""
    from django.db import connection, transaction

    from dashboard.fleet.models import WatchedModel
    from dashboard.projects.models import Project

    kept = Project.objects.filter(slug="bench").first()
    if kept is not None:
        return kept, WatchedModel.objects.filter(project=kept).latest("pk")
    began = time.monotonic()
    with transaction.atomic():
        project, model = catalogue(options.models, options.instances)
    rows = rows_made(project.pk)
    with connection.cursor() as cursor:
        # The database does this automatically when rows arrive over weeks.
        cursor.execute("ANALYZE")
    print(
        f"{connection.vendor}: {rows:,} rows of {options.models} models in "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    return project, model


def main() -> int:
    """Creates a database and drops it at the end unless `--keep` is given; 1 if a goal is
    missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="measure the server only, without Chromium",
    )
    parser.add_argument(
        "--keep",
        metavar="NAME",
        help="use and keep the database with this name; create it if it does not exist",
    )
    options = parser.parse_args()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.db import connection

    name = connection.settings_dict["NAME"]
    if options.keep:
        connection.settings_dict["TEST"]["NAME"] = options.keep
    # Serialization would read a kept history into memory, row by row.
    connection.creation.create_test_db(
        verbosity=0, autoclobber=True, serialize=False, keepdb=bool(options.keep)
    )
    try:
        project, model = history(options)
        ago = time.time() - model.last_seen_at.timestamp()
        with mock.patch("dashboard.common.clock.unix", lambda: time.time() - ago):
            return show(measure_pages(project, model, options.times, browser=options.browser))
    finally:
        connection.creation.destroy_test_db(name, verbosity=0, keepdb=bool(options.keep))


if __name__ == "__main__":
    sys.exit(main())
