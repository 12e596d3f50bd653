"""The last report of a process gives its exit code or the signal that ended it, if known;
`shutdown` is no end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import command, run
from tests.agent.server import Dashboard

START = """
import multiprocessing, os, signal, sys, time
import compilewatch

def work(end=""):
    compilewatch.init(model="m", interval=200)
    compilewatch.agent.AGENT.worker.wait_until_loaded()
    compilewatch.watch(lambda: None, name="forward")()
    exec(end)

def child(how, end):
    process = multiprocessing.get_context(how).Process(target=work, args=(end,))
    process.start()
    process.join()
    return process.exitcode

if __name__ == "__main__":
"""
ENDS = {
    "the end of the file": ("work()", [{"code": 0}]),
    "an exception": ("work('1 / 0')", [{"code": 1}]),
    "an interrupt": ("work('raise KeyboardInterrupt')", [{"signal": "SIGINT"}]),
    "a code that Python forgets": ("work('sys.exit(3)')", [{}]),
    "a signal": (
        "work('os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)')",
        [{"signal": "SIGTERM"}],
    ),
    "a shutdown in mid-life": ("work('compilewatch.shutdown()')", []),
    "a child that ends": ("assert child('fork', '') == 0", [{"code": 0}]),
    "a child that exits": ("assert child('fork', 'sys.exit(3)') == 3", [{"code": 3}]),
    "a child that fails": ("assert child('spawn', '1 / 0') == 1", [{"code": 1}]),
    "a child of one that handles an error": (
        "try:\n        1 / 0\n    except ZeroDivisionError:\n        assert child('fork', '') == 0",
        [{"code": 0}],
    ),
    "a child that is terminated": (
        "assert child('fork', 'os.kill(os.getpid(), 15); time.sleep(60)') == -15",
        [{"signal": "SIGTERM"}],
    ),
}


def endings(dashboard: Dashboard) -> list[dict[str, object]]:
    return [
        dict(fact.data)
        for report in dashboard.reports()
        for fact in report.facts
        if fact.kind == "ended"
    ]


@pytest.mark.parametrize(("end", "expected"), ENDS.values(), ids=ENDS.keys())
def test_the_last_report_gives_the_end(
    dashboard: Dashboard, tmp_path: Path, end: str, expected: list[dict[str, object]]
) -> None:
    program = tmp_path / "job.py"
    program.write_text(f"{START}    {end}\n")
    run(program, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert dashboard.calls("forward") == 1
    assert endings(dashboard) == expected


def test_the_last_report_gives_the_same_end_under_run(dashboard: Dashboard, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("compile = None\n")
    program = tmp_path / "job.py"
    for end, expected in (
        ("", {"code": 0}),
        ("1 / 0\n", {"code": 1}),
        ("import sys\nsys.exit(3)\n", {}),
    ):
        program.write_text(f"import torch\n{end}")
        command("run", "--model", "m", "--", str(program), ENDPOINT=dashboard.endpoint, API_KEY=KEY)
        assert endings(dashboard)[-1] == expected
