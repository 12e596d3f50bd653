"""A dashboard that a proxy serves under a path next to other programs: a job's reports, every link,
the requests of pages and the links in notifications stay under the path, and no other program
receives a cookie of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.environment import DATABASE
from tests.flow.receiver import Receiver
from tests.flow.reverse_proxy import ReverseProxy
from tests.flow.stack import REPOSITORY, Stack, host_port, wait_for

PREFIX = "/ops/compilewatch"
LINKS = re.compile(r'\s(?:href|src|action|formaction|hx-get|data-[a-z-]+)="([^"#][^"]*)"')
SIGNS_OUT = ("/accounts/logout/", "/admin/logout/")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def slack() -> Iterator[Receiver]:
    """A stub of Slack."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(params=[True, False], ids=["path taken off", "path left on"])
def proxy(request: pytest.FixtureRequest) -> Iterator[ReverseProxy]:
    """Both kinds of proxies."""
    running = ReverseProxy(prefix=PREFIX, strips=request.param)
    yield running
    running.close()


@pytest.fixture
def stack(proxy: ReverseProxy, tmp_path: Path, slack: Receiver) -> Iterator[Stack]:
    """A dashboard with the address of the proxy, with reports of a job that uses the same
    address."""
    running = Stack(database=DATABASE, folder=tmp_path, outbound=host_port(slack.url))
    # The proxy of the test speaks no TLS.
    running.environment |= {"COMPILEWATCH_BASE_URL": proxy.address, "COMPILEWATCH_ALLOW_HTTP": "1"}
    proxy.target = running.port
    try:
        running.start(channel=slack.url)
        agent = {"COMPILEWATCH_ENDPOINT": proxy.address, "COMPILEWATCH_API_KEY": running.key}
        job = [sys.executable, "-m", "tests.flow.small_job", "4"]
        subprocess.run(
            job, cwd=REPOSITORY, env=running.environment | agent, check=True, timeout=300
        )
        wait_for(
            "the reports of the job are folded",
            lambda: running.rows("SELECT 1 FROM version_minute"),
            seconds=120,
        )
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


def linked(page: Page, proxy: ReverseProxy) -> dict[str, int]:
    """The status of every URL reachable by links from the first page, requested with the cookies of
    the browser."""
    host = urlsplit(proxy.address).netloc
    waiting, seen = deque([f"{proxy.address}/"]), dict[str, int]()
    while waiting:
        address = waiting.popleft().partition("#")[0]
        kind = re.sub(r"\?.*", "", address)  # one of each page, without its filters
        if urlsplit(address).netloc != host or kind in seen or kind.endswith(SIGNS_OUT):
            continue
        answer = page.request.get(address)
        seen[kind] = answer.status
        if "text/html" in answer.headers.get("content-type", ""):
            found = [unescape(link) for link in LINKS.findall(answer.text())]
            waiting.extend(
                urljoin(answer.url, link) for link in found if link.startswith(("/", "?", "http"))
            )
    return seen


def test_under_a_path(
    stack: Stack, proxy: ReverseProxy, slack: Receiver, page: Page, complaints: list[str]
) -> None:
    page.goto(proxy.address)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("table.ft")).to_contain_text("ranker", timeout=60_000)
    assert {cookie["path"] for cookie in page.context.cookies()} == {PREFIX}

    # Pages with automatic requests: live parts, the search, the charts.
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers) as live:
        assert live.value.status in (200, 304)
    page.locator("[data-search]").fill("rank")
    expect(page.locator("#found a").first).to_contain_text("ranker", timeout=60_000)
    page.goto(f"{proxy.address}/p/flow/")
    page.locator("table.ft a", has_text="ranker").first.click()
    page.wait_for_load_state("networkidle")
    assert page.url.startswith(f"{proxy.address}/p/flow/models/")

    page.goto(f"{proxy.address}/p/flow/setup/")
    expect(page.locator("#env")).to_contain_text(
        f"COMPILEWATCH_ENDPOINT={proxy.address}", timeout=60_000
    )
    page.goto(f"{proxy.address}/p/flow/settings/messages/")
    page.get_by_role("button", name="Send test").click()
    wait_for("Slack is notified", lambda: slack.messages, seconds=120)
    urls = re.findall(r"https?://127\.0\.0\.1[^\s\"|>\\]*", json.dumps(slack.messages))
    assert urls and all(address.startswith(f"{proxy.address}/p/flow/") for address in urls), (
        slack.messages
    )

    statuses = linked(page, proxy)
    wrong = {
        address: status for address, status in statuses.items() if status not in (200, 405)
    }  # 405: the address of a form
    assert len(statuses) > 60 and not wrong, wrong

    # After a session ends on an open page, the page shows it and leads back to the same page.
    page.goto(f"{proxy.address}/p/flow/")
    page.context.clear_cookies()
    expect(page.locator("#ended")).to_be_visible(timeout=120_000)
    page.get_by_role("link", name="Sign in again").click()
    assert (
        page.url
        == f"{proxy.address}/accounts/login/?next={PREFIX.replace('/', '%2F')}%2Fp%2Fflow%2F"
    )
    assert (proxy.strayed, proxy.cookies_elsewhere) == ([], [])
