"""A database of the first release is migrated with its data: nothing is lost, folding continues,
pages open."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.environment import DATABASE
from tests.flow.stack import POSTGRESQL, REPOSITORY

pytestmark = pytest.mark.timeout(900)
RELEASES = REPOSITORY / "tests/data/releases"
ENDED = 1795200360
"""End of the recording in the database."""

OPEN_IT = f"""
import json, django
django.setup()
from django.core.management import call_command
from django.db.models import Sum
from django.test import Client
from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.models import VersionHour, WatchedModel
from dashboard.fleet.fold_service import fold_all
from dashboard.ingest.models import InboxRow
from dashboard.regressions.models import Verdict
clock.unix = lambda: {ENDED} + 60.0
found = {{"before": VersionHour.objects.aggregate(calls=Sum("calls"))["calls"], "waiting": InboxRow.objects.count()}}
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
found["folded"], found["verdicts"] = fold_all(), Verdict.objects.count()
found["after"] = VersionHour.objects.aggregate(calls=Sum("calls"))["calls"]
client = Client(headers={{"host": "127.0.0.1"}})
client.force_login(User.objects.get(username="ada"))
model = WatchedModel.objects.get().pk
pages = ["", f"models/{{model}}/", f"models/{{model}}/compare", "alerts/", "setup/", "health/"]
found["pages"] = {{page: client.get("/p/recorded/" + page).status_code for page in pages}}
print(json.dumps(found))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment of a dashboard whose database the first release wrote."""
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    settings = plain | {
        "COMPILEWATCH_DATA": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    text = gzip.decompress((RELEASES / f"first-{DATABASE}.sql.gz").read_bytes()).decode()
    if DATABASE == "sqlite":
        with sqlite3.connect(tmp_path / "compilewatch.sqlite3") as connection:
            connection.executescript(text)
        yield settings
        return
    name, address = f"compilewatch_first_{os.getpid()}", "{user}@{host}:{port}".format(**POSTGRESQL)
    with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            url = f"postgresql://{address}/{name}"
            subprocess.run(
                ["psql", "-q", "-v", "ON_ERROR_STOP=1", url],
                input=text,
                text=True,
                check=True,
                capture_output=True,
                timeout=300,
            )
            yield settings | {"COMPILEWATCH_DATABASE_URL": url}
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_release(environment: dict[str, str]) -> None:
    recorded = 0
    for path in (REPOSITORY / "tests/data/recordings").glob("h200-serve-*.gz"):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            recorded += sum(
                region["calls"]
                for report in json.loads(line)["reports"]
                for region in report.get("regions", [])
            )
    run(environment, "manage.py", "migrate", "--verbosity=0")
    found = json.loads(run(environment, "-c", OPEN_IT).splitlines()[-1])
    assert found["waiting"] == found["folded"] == 20 and found["verdicts"] == 2
    assert 0 < found["before"] < found["after"] == recorded
    assert set(found["pages"].values()) == {200}, found["pages"]
