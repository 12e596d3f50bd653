"""The ledger that checks fault rounds: it has no differences after a correct fold, and detects each
kind of wrong fold."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from dashboard.common import clock
from dashboard.fleet.fold import fold_report
from dashboard.fleet.fold_service import fold_all
from dashboard.ingest.batch import batch_read
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project
from tests.environment import DATABASE
from tests.faults import plain_sender
from tests.faults.account import account_of
from tests.faults.tables import ARRIVALS_NOTED

pytestmark = pytest.mark.django_db
WINDOWS = 40


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


@pytest.fixture
def problems(project: Project, tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """Stores the reports that two senders without an agent recorded; the returned function folds
    them and compares the ledger."""
    for statement in ARRIVALS_NOTED[DATABASE]:
        rows(statement)
    chance = random.Random(7)
    file = os.open(tmp_path / "0.notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for sender in [plain_sender.Process(chance, "round-7-plain") for _ in range(2)]:
        windows = [sender.window() for _ in range(WINDOWS)]
        for report, note in windows:
            plain_sender.write(file, "window", **note)
            text = json.dumps(
                {"v": 1, "sent": clock.unix(), "instance": sender.identity, "reports": [report]}
            ).encode()
            [stored] = reports_store(
                [batch_read(text=text, project_id=project.pk, received=clock.unix())]
            )
            assert not stored.rejected
            plain_sender.write(file, "acked", instance=sender.id, seq=report["seq"])
    os.close(file)

    def ask() -> list[str]:
        fold_all()
        return account_of(rows, DATABASE, tmp_path).problems

    yield ask


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Any], Any]], None]:
    """`spoil("correct_window", change)`: changes the result of a fold function once, the eighth
    time that the change applies."""

    def patch(name: str, change: Callable[[Any], Any]) -> None:
        right, left = getattr(fold_report, name), [8]

        def wrong(*given: Any) -> Any:
            result = right(*given)
            changed = change(result)
            left[0] -= changed is not None
            return changed if changed is not None and left[0] == 0 else result

        monkeypatch.setattr(fold_report, name, wrong)

    return patch


def without_a_value(calls: Any) -> Any:
    if not calls.latency or not calls.latency.count:
        return None
    fewer = calls.latency.copy()
    fewer.bins[0] -= 1
    fewer.count -= 1
    return replace(calls, latency=fewer)


def test_a_correct_fold_has_no_differences(problems: Callable[[], list[str]]) -> None:
    assert problems() == []
    assert (
        len(rows("SELECT 1 FROM region_minute")) > WINDOWS
        and len(rows("SELECT 1 FROM compile_event")) > WINDOWS
    )


@pytest.mark.parametrize(
    ("name", "change", "table"),
    [
        (
            "_count_calls",
            lambda calls: replace(calls, calls=2 * calls.calls) if calls.calls else None,
            "region_minute",
        ),
        (
            "_count_calls",
            lambda calls: replace(calls, errors=calls.errors - 1) if calls.errors else None,
            "region_minute",
        ),
        ("_count_calls", without_a_value, "region_minute"),
        (
            "correct_window",
            lambda window: None if window.long else replace(window, minute=window.minute + 1),
            "region_minute",
        ),
        (
            "correct_window",
            lambda window: None if window.long else replace(window, minute=window.minute + 60),
            "version_hour",
        ),
        (
            "fold_process",
            lambda process: (
                replace(process, compiles=process.compiles - 1) if process.compiles else None
            ),
            "process_minute",
        ),
        (
            "fold_process",
            lambda process: replace(process, windows=process.windows + 1),
            "version_process_hour",
        ),
    ],
    ids=[
        "doubles calls",
        "loses an error",
        "loses a value",
        "shifts a minute",
        "shifts an hour",
        "loses a compilation",
        "counts twice",
    ],
)
def test_one_wrong_fold_is_found(
    problems: Callable[[], list[str]],
    spoil: Callable[[str, Callable[[Any], Any]], None],
    name: str,
    change: Callable[[Any], Any],
    table: str,
) -> None:
    spoil(name, change)
    assert any(problem.startswith(f"{table} of ") for problem in problems())


def test_a_minute_that_is_folded_twice_is_found(
    problems: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    right, folded = fold_report._row_add, []

    def twice(facts: fold_report.Facts, row: fold_report.EncodedReport) -> None:
        right(facts, row)
        folded.append(row)
        if len(folded) == 8:
            right(facts, row)

    monkeypatch.setattr(fold_report, "_row_add", twice)
    assert any(problem.startswith("process_minute of ") for problem in problems())


def test_a_dropped_compile_event_is_found(
    problems: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = fold_report.compiles_fold
    dropped: list[object] = []

    def without(facts: fold_report.Facts, *given: Any) -> None:
        right(facts, *given)
        if facts.compiles and not dropped:
            dropped.append(facts.compiles.popitem())

    monkeypatch.setattr(fold_report, "compiles_fold", without)
    [problem] = problems()
    assert problem.startswith("compile_event of ") and "events 0 instead of 1" in problem


@pytest.mark.parametrize(
    ("change", "table"),
    [
        (
            "UPDATE version_hour SET calls = calls + 1 WHERE hour = (SELECT max(hour) FROM "
            "version_hour)",
            "version_hour",
        ),
        ("UPDATE region_minute SET latency_count = latency_count + 1", "region_minute"),
        (
            "DELETE FROM version_process_minute WHERE minute = (SELECT max(minute) FROM "
            "version_process_minute)",
            "version_process_minute",
        ),
        # The sum is unchanged.
        (
            "UPDATE region_minute SET calls = calls + CASE WHEN instance_id = (SELECT "
            "max(id) FROM instance) THEN 1 ELSE -1 END"
            " WHERE calls > 0",
            "region_minute",
        ),
    ],
    ids=["an hour", "the count of a sketch", "a row", "one instance's for another's"],
)
def test_a_changed_table_is_found(
    problems: Callable[[], list[str]], change: str, table: str
) -> None:
    assert problems() == []
    rows(change)
    assert {problem.split()[0] for problem in problems()} == {table}


def test_a_doubled_report_and_an_acknowledged_report_that_was_lost_are_found(
    problems: Callable[[], list[str]],
) -> None:
    [first, last] = rows("SELECT * FROM arrival")[:2]
    rows(
        f"INSERT INTO arrival SELECT * FROM arrival WHERE instance_id = '{first[0]}' AND "
        f"seq_first = {first[1]}"
    )
    rows(f"DELETE FROM arrival WHERE instance_id = '{last[0]}' AND seq_first = {last[1]}")
    found = problems()
    assert any("was stored 2 times" in problem for problem in found)
    assert any("was acknowledged but is not stored" in problem for problem in found)
