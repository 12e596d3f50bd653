"""When the agent is stopped, the recorded calls are sent first; later calls run unwatched, and
without settings nothing is sent."""

from __future__ import annotations

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


def test_shutdown_sends_what_was_recorded(dashboard: Dashboard) -> None:
    done = run(
        CALLS + "compilewatch.shutdown(); print('sent'); compilewatch.shutdown()",
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "sent\n", "")
    assert dashboard.calls("forward") == 1000


def test_calls_after_the_end_run_unwatched(dashboard: Dashboard) -> None:
    done = run(
        CALLS + "compilewatch.shutdown(); call(); print('still here')",
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
    )
    assert done.stdout == "still here\n"
    assert dashboard.calls("forward") == 1000


def test_without_settings_there_is_one_line_and_the_job_runs() -> None:
    done = run(CALLS + "print('done')")
    assert done.stdout == "done\n"
    assert (
        done.stderr
        == "compilewatch: off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT\n"
    )
