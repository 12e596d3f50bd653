"""A full run that is killed continues with the tests that have not passed, and its table counts
everything once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults import rows
from tests.faults.results import LedgerError
from tests.faults.table import Entry, lines
from tests.flow.stack import REPOSITORY

TESTS = """
import os, signal
from pathlib import Path

RAN = Path(os.environ["RAN"])

def ran(name):
    with RAN.open("a") as file:
        file.write(name + "\\n")

def test_first(add_result, seed):
    ran("first")
    add_result("13", jobs=4, doubled=0)

def test_fails(add_result):
    ran("fails")
    assert RAN.with_name("mended").exists(), "not mended yet"
    add_result("14", jobs=2, doubled=0)

def test_is_killed(add_result):
    ran("is killed")
    if not RAN.with_name("mended").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    add_result("13", jobs=3, doubled=0)
"""


def full_run(folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "test_list.py").write_text(TESTS)
    settings = {
        "COMPILEWATCH_TEST_FAULTS": "full",
        "COMPILEWATCH_TEST_RESULTS": str(folder / "found.jsonl"),
        "RAN": str(folder / "ran"),
    }
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.faults.results",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
    ]
    environment = {
        **os.environ,
        **settings,
        "PYTHONPATH": str(REPOSITORY),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        [*words, "test_list.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_passed_tests_do_not_run_again_and_the_table_has_all_results(tmp_path: Path) -> None:
    killed = full_run(tmp_path)
    assert killed.returncode == -9
    with (tmp_path / "found.jsonl").open("a") as file:
        file.write('{"test": "cut o')
    (tmp_path / "mended").touch()
    resumed = full_run(tmp_path)
    assert resumed.returncode == 0, resumed.stdout
    assert (tmp_path / "ran").read_text().split("\n")[:-1] == [
        "first",
        "fails",
        "is killed",
        "fails",
        "is killed",
    ]
    table = {
        words[0]: words[-4:] for line in resumed.stdout.splitlines() if (words := line.split())
    }
    assert (table["13"], table["14"]) == (["2", "7", "-", "0"], ["1", "2", "-", "0"])
    again = full_run(tmp_path)
    assert "3 passed" in again.stdout and len((tmp_path / "ran").read_text().splitlines()) == 8


def test_a_failure_is_listed_with_its_values_and_its_seed() -> None:
    broken = LedgerError(
        "folded and recorded totals differ", {"jobs": 2, "acknowledged lost": 3, "doubled": 5}
    )
    entry = Entry(
        "tests/faults/test_killed_jobs_lose_one_open_window_at_most.py::test_x",
        77,
        False,
        1.0,
        [broken.figures],
        str(broken),
    )
    printed = list(lines(rows.ROWS, [entry]))
    [first] = [line for line in printed if line.split()[0] == "1"]
    assert first.split()[-5:] == ["2", "3", "5", "1", "FAILED"]
    assert (
        printed[-1].startswith("failed: tests/faults/test_killed_jobs") and "seed 77" in printed[-1]
    )


def test_the_passed_rounds_of_all_runs_are_counted() -> None:
    file = "tests/faults/test_random_faults_lose_and_double_nothing.py"
    entries = [
        Entry(f"{file}::test_a_round[sqlite-{number}]", 1, number > 1002, 9.0, [{"runs": 1}])
        for number in range(1000, 1017)
    ]
    [printed] = [line for line in lines(rows.ROWS, entries) if "passed so far" in line]
    assert printed.split() == ["14", "of", "1,000", "have", "passed", "so", "far"]


def test_every_row_names_existing_files() -> None:
    files = [file for row in rows.ROWS.values() for file in row.files]
    assert [file for file in files if not (REPOSITORY / "tests" / file).exists()] == []
    assert {*map(str, range(1, 20)), "37"} <= set(rows.ROWS)
