"""A worker ends at a database that an earlier release migrated, with a sentence that names
the command to run; web waits for the migration."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.flow.stack import POSTGRESQL, free_port, wait_for
from tests.flow.test_a_wrong_password_is_one_sentence import (
    HERE,
    PROGRAMS,
    REPOSITORY,
    environment,
    started,
    status,
)

pytestmark = pytest.mark.postgresql_only
EARLIER = REPOSITORY / "tests/data/releases/first-postgresql.sql.gz"
NAME = f"compilewatch_earlier_{os.getpid()}"


@pytest.fixture(scope="module")
def earlier() -> Iterator[dict[str, str]]:
    """The settings of a dashboard whose database the first release wrote."""
    with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
        connection.execute(f"CREATE DATABASE {NAME}")
        try:
            settings = environment(
                int(POSTGRESQL["port"]), password="", name=NAME, user=POSTGRESQL["user"]
            )
            url = "postgresql://{user}@{host}:{port}".format(**POSTGRESQL) + f"/{NAME}"
            text = gzip.decompress(EARLIER.read_bytes())
            subprocess.run(
                ["psql", "-q", "-v", "ON_ERROR_STOP=1", url],
                input=text,
                check=True,
                capture_output=True,
                timeout=300,
            )
            yield settings | HERE | {"COMPILEWATCH_DATABASE_URL": url}
        finally:
            connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


def test_a_worker_ends(earlier: dict[str, str]) -> None:
    ended = started("worker", earlier)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 3, said
    [line] = [line for line in said.splitlines() if "COMPILEWATCH_DATABASE_URL" in line]
    assert (
        "compilewatch cannot start: " in line
        and "migrations are not applied; run manage.py migrate." in line
    )
    assert "Traceback" not in said


def test_a_command_that_needs_missing_columns_ends(earlier: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "scrape", "--list"]
    ended = subprocess.run(
        command, cwd=REPOSITORY, env=earlier, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert "migrations are not applied; run manage.py migrate." in ended.stderr


def test_the_doctor_does_not_report_an_unreachable_database(
    earlier: dict[str, str], tmp_path: Path
) -> None:
    ended = started("doctor", earlier)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert (
        "run manage.py migrate." in ended.stdout
        and "Unknown: migrations are missing." in ended.stdout
    )
    assert "does not answer" not in ended.stdout


@pytest.mark.parametrize("words", [["key_make", "--name", "x"], ["storage"]])
def test_a_command_on_an_empty_file_ends_as_well(words: list[str], tmp_path: Path) -> None:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    command = [sys.executable, "manage.py", *words]
    settings = kept | {"COMPILEWATCH_DATA": str(tmp_path)}
    ended = subprocess.run(
        command, cwd=REPOSITORY, env=settings, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert "migrations are not applied; run manage.py migrate." in ended.stderr


def test_a_full_disk_is_not_mistaken_for_an_old_schema(tmp_path: Path) -> None:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    for words in (["serve"], ["migrate"]):
        command = ["prlimit", "--fsize=20000", sys.executable, "manage.py", *words]
        settings = kept | {
            "COMPILEWATCH_DATA": str(tmp_path),
            "COMPILEWATCH_PORT": str(free_port()),
        }
        ended = subprocess.run(
            command, cwd=REPOSITORY, env=settings, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
        assert (
            f"The database {tmp_path}/compilewatch.sqlite3 cannot be used: " in ended.stderr
            and "migrations" not in ended.stderr
        )


def test_web_runs_and_reports_that_it_is_not_ready(earlier: dict[str, str], tmp_path: Path) -> None:
    port = int(earlier["COMPILEWATCH_PORT"])
    with (tmp_path / "log").open("w") as log:
        web = subprocess.Popen(
            PROGRAMS["web"][0], cwd=REPOSITORY, env=earlier, stdout=log, stderr=log
        )
    try:
        wait_for(
            "it reports that it is not ready", lambda: status(port, "/readyz") == 503, seconds=120
        )
        with pytest.raises(urllib.error.HTTPError) as not_ready:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60)
        assert (
            "migrations are not applied; run manage.py migrate." in not_ready.value.read().decode()
        )
        assert status(port, "/healthz") == 200
    finally:
        web.terminate()
        web.wait(60)
