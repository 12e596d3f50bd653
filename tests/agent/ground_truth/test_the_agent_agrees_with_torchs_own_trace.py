"""The agent's report of each program compared with torch's own trace of the same run, cold and, if
a cache can answer, warm: every difference has a reason, and every reason has a difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from compilewatch.wire.messages import Identity, Report

from tests.agent.ground_truth.cases import CASES, COLD, IN_EACH_RUN, PROGRAMS, WARM, Case
from tests.agent.ground_truth.running import AGENTS, Recorded, Run, run_twice
from tests.agent.ground_truth.table import Row, rows_of
from tests.machine import need


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=() if case.name in IN_EACH_RUN else pytest.mark.engines_only,
        )
        for case in CASES
    ],
)
def test_every_row_agrees_or_is_explained(case: Case, tmp_path: Path) -> None:
    starts: tuple[str, ...] = (
        COLD,
    )  # only inductor has a cache; the table of __main__ starts every program twice
    if "inductor" in (PROGRAMS / f"{case.name}.py").read_text():
        need("a C++ compiler")
        starts = (COLD, WARM)
    rows = [row for run in run_twice(case, tmp_path, starts=starts) for row in rows_of(case, run)]
    assert [row.fault for row in rows if row.fault] == []
    measured = {row.measure for row in rows}
    assert {measure.split(" (")[0] for measure in case.explained} <= measured


def test_every_program_is_a_case() -> None:
    assert {case.name for case in CASES} > IN_EACH_RUN
    assert {file.stem for file in PROGRAMS.glob("*.py")} == {case.name for case in CASES}
    assert len(CASES) >= 25


def test_the_readme_counts_these_rows() -> None:
    empty = Run(
        COLD,
        [
            Recorded(
                Identity(id="", started=0.0, model="", version=""), [Report((1, 1), (0.0, 1.0))]
            )
        ],
        [],
    )
    measures = [row.measure for row in rows_of(Case("none", {}), empty)]
    rows = sum(case.processes for case in CASES for _ in (COLD, WARM) for _ in measures)
    differing = sum(
        case.processes
        for case in CASES
        for start in (COLD, WARM)
        for measure in measures
        if case.why(measure, start)
    )
    reasons = {reason for case in CASES for reason in case.explained.values()}
    guide = " ".join((AGENTS / "docs/design/evidence.md").read_text().split())
    assert f"runs {len(CASES)} programs as real processes" in guide
    counted = (
        f"Of {rows} rows {rows - differing} agree; the other {differing} differ for "
        f"{len(reasons)} reasons that the table names"
    )
    assert counted in guide


@pytest.mark.parametrize(
    ("agrees", "why", "fault"),
    [
        (True, "", ""),
        (False, "torch counts twice", ""),
        (
            False,
            "",
            "one, cold, rank 0, breaks: the agent reports 1, the trace 2, and nothing explains it",
        ),
        (
            True,
            "torch counts twice",
            "one, cold, rank 0, breaks: the agent reports 1, the trace 2, so this "
            "reason is obsolete: torch counts twice",
        ),
    ],
)
def test_a_difference_without_a_reason_and_a_reason_without_a_difference_are_faults(
    agrees: bool, why: str, fault: str
) -> None:
    assert Row("one", "cold", 0, "breaks", 1, 2, agrees, why).fault == fault
