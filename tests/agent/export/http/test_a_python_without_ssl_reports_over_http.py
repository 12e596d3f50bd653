"""A Python built without OpenSSL reports over http, and for https logs the missing module."""

from __future__ import annotations

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

JOB = """
import sys
sys.modules["_ssl"] = None
import compilewatch
compilewatch.init(model="m", interval=0.1)
compilewatch.watch(lambda: None, name="forward")()
compilewatch.shutdown()
"""


def test_over_http_every_call_arrives(dashboard: Dashboard) -> None:
    done = run(JOB, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr, dashboard.calls("forward")) == (0, "", 1)


def test_over_https_the_agent_is_off_with_one_line() -> None:
    done = run(JOB, ENDPOINT="https://127.0.0.1:9", API_KEY=KEY)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("compilewatch: ") and "ssl" in line
