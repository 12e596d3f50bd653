"""Every bad input: the exact status and code, never a 5xx, nothing stored unless valid, and the
next good report accepted."""

from __future__ import annotations

from tests.flow.stack import wait_for
from tests.hostile import http_cases, json_cases, schema_cases
from tests.hostile.case import Case
from tests.hostile.target import Target, processes

CASES = (*http_cases.CASES, *json_cases.CASES, *schema_cases.CASES)


def test_each_has_its_status_and_code_and_the_next_good_report_is_accepted(target: Target) -> None:
    wrong: dict[str, str] = {}
    for number, case in enumerate(CASES, start=1):
        if case.full_only and target.stack.database == "sqlite":
            continue
        target.number = number
        problem = problem_of(case, target)
        if problem:
            wrong[f"row {case.row}: {case.title}"] = problem
    assert not wrong, "\n".join(f"{name}: {problem}" for name, problem in wrong.items())


def problem_of(case: Case, target: Target) -> str:
    """The error of the response, of the stored data, or of the response to the next good report;
    empty if there is none."""
    problem = case.wanted.problem(case.send(target), target.ranges())
    if not problem and target.number % 10 == 0:
        target.number += 1_000_000
        good = target.post(target.data())
        if good.status != 200 or good.data.get("acked") != [[1, 1]]:
            problem = f"the next good report got {good.status}: {good.body[:200]!r}"
    return problem


def test_all_stored_reports_can_be_folded(target: Target) -> None:
    wait_for("everything is folded", target.stack.folded, seconds=120)
    assert target.stack.rows("SELECT error FROM ingest_poison") == []
    assert target.stack.rows("SELECT count(*) FROM instance")[0][0] > 50


def test_a_key_in_the_url_is_in_the_audit_log(target: Target) -> None:
    assert (
        target.stack.rows("SELECT count(*) FROM audit_entry WHERE action = 'key.exposed'")[0][0]
        >= 1
    )


def test_no_process_wrote_a_traceback_or_grew_by_a_body(target: Target) -> None:
    assert "Traceback" not in target.stack.logs()
    assert max(process.memory_info().rss for process in processes(target.stack)) < 400 << 20
