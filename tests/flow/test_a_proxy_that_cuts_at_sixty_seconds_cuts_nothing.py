"""Behind a proxy that cuts requests after a minute, no request takes that long. The proxy of the
test cuts after three seconds. It would thus reveal a request that waits for news, or a connection
that must stay open between two reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from compilewatch.export.http import connection as of_agents

from dashboard.common.connection_pool import (
    LOCK_TIMEOUT_S,
    POOL_OPTIONS,
    SERVER_SILENCE_TIMEOUT_S,
    STATEMENT_TIMEOUT_S,
)
from tests.environment import DATABASE
from tests.flow.reverse_proxy import ReverseProxy
from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(900)

MINUTE = 60.0
CUT = 3.0
LIVE = ("", "alerts/", "health/", "models/1/instances/", "setup/arrival/")
WHOLE = (
    "models/1/",
    "models/1.json",
    "models/1.csv",
    "models/1/compare",
    "fleet.csv",
    "settings/audit/",
    "setup/",
)


@pytest.fixture
def proxy() -> Iterator[ReverseProxy]:
    """A proxy that cuts idle or unanswered connections after three seconds."""
    running = ReverseProxy(cut=CUT)
    yield running
    running.close()


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A dashboard behind the proxy."""
    running = Stack(database=DATABASE, folder=tmp_path, outbound="127.0.0.1:9")
    running.environment["COMPILEWATCH_ALLOW_HTTP"] = "1"  # the proxy of the test supports no TLS
    try:
        running.start(channel="http://127.0.0.1:9/none")
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


def test_a_job_that_reports_less_often_than_the_cut_loses_nothing(
    stack: Stack, proxy: ReverseProxy
) -> None:
    proxy.target = stack.port
    agent = {
        "COMPILEWATCH_ENDPOINT": proxy.address,
        "COMPILEWATCH_API_KEY": stack.key,
        "COMPILEWATCH_INTERVAL": str(CUT + 2),
    }
    job = [sys.executable, "-m", "tests.flow.small_job", str(4 * CUT)]
    said = subprocess.run(
        job,
        cwd=REPOSITORY,
        env=stack.environment | agent,
        check=True,
        timeout=300,
        capture_output=True,
        text=True,
    )
    wait_for(
        "the reports of the job are folded",
        lambda: stack.folded() and stack.rows("SELECT 1 FROM version_minute"),
        seconds=120,
    )
    reports = [status for path, status, _ in proxy.passed if path == "/api/v1/reports"]
    assert len(reports) >= 3 and said.stderr == ""
    # Reports that the proxy cut on a busy machine were sent again: no window is missing in the
    # stored ranges.
    [(ranges,)] = stack.rows("SELECT ranges FROM ingest_sender")
    held = json.loads(ranges) if isinstance(ranges, str) else ranges
    assert [first for first, _ in held] == [1]


def test_no_page_waits_for_news(stack: Stack, proxy: ReverseProxy) -> None:
    """Pages that refresh automatically poll; each poll is answered at once, changed or not."""
    proxy.target = stack.port
    agent = {"COMPILEWATCH_ENDPOINT": proxy.address, "COMPILEWATCH_API_KEY": stack.key}
    job = [sys.executable, "-m", "tests.flow.small_job", "3"]
    subprocess.run(job, cwd=REPOSITORY, env=stack.environment | agent, check=True, timeout=300)
    wait_for(
        "the reports of the job are folded",
        lambda: stack.rows("SELECT 1 FROM version_minute"),
        seconds=120,
    )
    browser = build_opener(HTTPCookieProcessor())

    def signed_in() -> bool:
        form = browser.open(f"{proxy.address}/accounts/login/").read().decode()
        if "csrfmiddlewaretoken" in form:  # a signed-in user is redirected from the form
            token = re.search(r'csrfmiddlewaretoken" ' r'value="([^"]+)', form)[1]  # type: ignore[index]
            fields = f"csrfmiddlewaretoken={token}&login=ada&password={stack.password}".encode()
            browser.open(
                Request(f"{proxy.address}/accounts/login/", fields, {"Referer": proxy.address})
            )
        return True

    def every_page() -> bool:
        del proxy.passed[:]
        for page in (*LIVE, *WHOLE):
            by_itself = {"HX-Request": "true"} if page in LIVE else {}
            for _ in range(2):
                browser.open(Request(f"{proxy.address}/p/flow/{page}", headers=by_itself)).read()
        return {status for _, status, _ in proxy.passed} == {200}

    assert wait_for("the sign-in answers before the cut", partial(in_time, signed_in), seconds=300)
    assert wait_for("all pages answer before the cut", partial(in_time, every_page), seconds=300)


def in_time(ask: Callable[[], bool]) -> bool:
    """True if the proxy cut nothing; a busy machine gets another try after its slow start."""
    try:
        return ask()
    except HTTPError as error:
        assert error.code == 504
        return False


def test_everything_that_waits_gives_up_long_before_a_minute() -> None:
    slowest = float(POOL_OPTIONS["timeout"]) + LOCK_TIMEOUT_S + STATEMENT_TIMEOUT_S  # type: ignore[arg-type]
    assert (
        of_agents.TOTAL_SECONDS < MINUTE / 2
        and slowest < MINUTE / 2
        and SERVER_SILENCE_TIMEOUT_S < MINUTE / 2
    )
