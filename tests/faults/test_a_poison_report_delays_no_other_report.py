"""A report that the database rejects: found by bisection, quarantined after at most three attempts,
and restored by `manage.py refold`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from compilewatch.wire.codec import dumps

from tests.dashboard.requests import region_make, request_make
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.faults.whole_line import WholeLine
from tests.flow.stack import answer_of, wait_for

pytestmark = pytest.mark.timeout(900)
POISON = 4242
REFUSED = f"""
CREATE SEQUENCE tried;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.calls = {POISON} THEN
    PERFORM nextval('tried'), pg_notify('tried', '');
    RAISE EXCEPTION 'this report cannot be stored';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON region_minute FOR EACH ROW EXECUTE FUNCTION refuse()
"""


@contextmanager
def a_database_that_refuses_it(line: WholeLine) -> Iterator[None]:
    """Storing a minute with this number of calls fails for every process."""
    line.rows_write(REFUSED)
    try:
        yield
    finally:
        line.rows_write(
            "DROP TRIGGER refuse ON region_minute; DROP FUNCTION refuse; DROP SEQUENCE tried"
        )


def send(line: WholeLine, version: str, count: int, poison: int) -> int:
    """Sends reports of one instance, one per minute, one of them poison; returns the number of
    calls in the others."""
    request = request_make(
        version=version, instance=poison, minutes=count, end=time.time() // 60 * 60
    )
    request.reports[poison].regions = [region_make(calls=POISON)]
    for start in range(0, count, 20):
        part = request_make(version=version, instance=poison, end=request.sent)
        part.reports = request.reports[start : start + 20]
        assert answer_of(line.port, line.key, dumps(part))[0] == 200
    return sum(region.calls for report in request.reports for region in report.regions) - POISON


def folded(line: WholeLine, version: str) -> int:
    """Calls in the hours of a version."""
    sums = (
        "SELECT coalesce(sum(calls), 0) FROM version_hour JOIN series ON series.id = series_id"
        " JOIN model_version ON model_version.id = series.version_id WHERE "
        f"model_version.name = '{version}'"
    )
    return int(line.rows(sums)[0][0])


def test_the_rest_is_folded_and_the_report_comes_back(
    whole_line: WholeLine, seed: int, add_result: AddResult
) -> None:
    version, count = f"poison-{seed}", sized(40, 1000)
    with a_database_that_refuses_it(whole_line):
        good = send(whole_line, version, count, poison=seed % count)
        wait_for("the inbox is empty", whole_line.folded, seconds=300)
        assert folded(whole_line, version) == good
        tries = int(whole_line.rows("SELECT last_value FROM tried")[0][0])
        [(number, error)] = whole_line.rows("SELECT seq_first, error FROM ingest_poison")
        assert number == seed % count + 1
        assert "this report cannot be stored" in error
    assert "1 report put back" in whole_line.manage("refold")
    wait_for(
        "the restored report is folded",
        lambda: folded(whole_line, version) == good + POISON,
        seconds=120,
    )
    assert whole_line.rows("SELECT count(*) FROM ingest_poison") == [(0,)]
    add_result("34", reports=count, tries=tries)
