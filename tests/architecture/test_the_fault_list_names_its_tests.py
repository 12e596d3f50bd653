"""Each row of the fault list names existing test files, and each fault test belongs to a row."""

from tests.architecture.tree import REPOSITORY
from tests.faults.rows import BENCHMARKS, LEFT_OUT, ROWS

OF_THE_RUN_ITSELF = {"faults/test_a_full_run_resumes.py"}
LAST_ROW = 38
TESTS = REPOSITORY / "tests"


def test_every_row_has_its_files() -> None:
    named = {file for row in ROWS.values() for file in row.files}
    assert [file for file in sorted(named) if not (TESTS / file).is_file()] == []
    assert all(
        file.rpartition("/")[2].startswith("bench_" if file.startswith(BENCHMARKS) else "test_")
        for file in named
    )
    assert {str(number) for number in range(1, LAST_ROW + 1)} == (set(ROWS) | set(LEFT_OUT)) - {
        "ledger"
    }
    assert not set(ROWS) & set(LEFT_OUT) and all(row.files for row in ROWS.values())


def test_every_fault_test_has_a_row() -> None:
    named = {file for row in ROWS.values() for file in row.files} | OF_THE_RUN_ITSELF
    assert (
        sorted({f"faults/{path.name}" for path in (TESTS / "faults").glob("test_*.py")} - named)
        == []
    )
