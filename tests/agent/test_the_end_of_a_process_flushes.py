"""However a process ends by itself, what it recorded is sent first, within a second; its exit code and its output are its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

CALLS = """
import sys, compilewatch
compilewatch.init(model="m", interval=200)
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(1000):
    call()
"""
ENDS = {
    "the end of the program": ("", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "an exception": ("raise ValueError('mine')", 1, "ValueError: mine"),
    "shutdown twice": ("compilewatch.shutdown(); compilewatch.shutdown()", 0, ""),
}


@pytest.mark.parametrize(("ending", "code", "said"), ENDS.values(), ids=ENDS.keys())
def test_everything_is_sent_at(dashboard: Dashboard, ending: str, code: int, said: str) -> None:
    done = run(CALLS + ending, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.returncode == code
    assert done.stderr.strip().endswith(said) and ("compilewatch:" not in done.stderr)
    assert dashboard.calls("forward") == 1000


def test_calls_after_the_end_go_straight_through(dashboard: Dashboard) -> None:
    done = run(CALLS + "compilewatch.shutdown(); call(); print('still here')", ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.stdout == "still here\n"
    assert dashboard.calls("forward") == 1000


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_dashboard_that_never_answers_does_not_keep_a_process(silent: str) -> None:
    program = CALLS + "import atexit, time; began = []\n"
    program += "atexit.register(lambda: print(time.monotonic() - began[0] < 4.0))\n"
    # Registered after the agent's own, so it runs before; the agent's is called by hand in between to be timed.
    program += "began.append(time.monotonic()); compilewatch.shutdown()"
    done = run(program, ENDPOINT=silent, API_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_dashboard_that_is_away_changes_nothing() -> None:
    done = run(CALLS + "sys.exit(5)", ENDPOINT="http://127.0.0.1:9", API_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "")


def test_without_settings_there_is_one_line_and_the_job_runs() -> None:
    done = run(CALLS + "print('done')")
    assert done.stdout == "done\n"
    assert done.stderr == "compilewatch: off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT\n"
