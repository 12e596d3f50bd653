"""Times on pages: one zone, one format, and a time of day on every timestamp; the script formats
them like the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.regressions.models import Verdict
from dashboard.ui.templatetags.format_filters import clock_time

FOREIGN = re.compile(r"\d\d:\d\d (?:UTC|CET|[ECMP][SD]T)\b")
WRITTEN = re.compile(r"^(\d{1,2} [A-Z][a-z]{2} (\d{4} )?)?\d\d:\d\d$")
NOW = datetime(2026, 11, 25, 5, 5, tzinfo=UTC)
"""Five past midnight in New York."""


SWAP = """(html) => { const main = document.querySelector('main'); main.innerHTML = html;
  main.dispatchEvent(new CustomEvent('htmx:afterSwap', { bubbles: true, detail: { elt: main } })); }"""
NEW_YORK = pytest.mark.browser_context_args(timezone_id="America/New_York", locale="de-DE")


def shown(page: Page, live_server: LiveServer, times: list[str]) -> list[str]:
    """The script's output for time elements that arrive with a swap."""
    page.clock.set_fixed_time(NOW)
    page.goto(f"{live_server.url}/accounts/login/")
    page.evaluate(SWAP, "".join(times))
    return page.locator("main time").all_inner_texts()


@pytest.mark.browser_context_args(timezone_id="UTC")
def test_the_script_and_the_server_write_the_same(
    page: Page, live_server: LiveServer, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "unix", NOW.timestamp)
    ago = [
        0,
        1,
        304,
        305,
        306,
        1439,
        1440,
        1441,
        60 * 24 * 30,
        60 * 24 * 365,
        60 * 24 * 400,
        -60,
        -60 * 24,
    ]
    times = [
        str(clock_time(NOW - timedelta(minutes=one), shape))
        for one in ago
        for shape in ("clock", "day")
    ]
    server = [re.sub("<[^>]*>", "", one) for one in times]
    assert all(WRITTEN.match(text) for text in server)
    assert shown(page, live_server, times) == server
    assert page.locator("[data-zone]").inner_text() == "Times: UTC"


@NEW_YORK
def test_after_midnight_yesterday_keeps_its_hour(
    page: Page, live_server: LiveServer, complaints: list[str]
) -> None:
    times = [str(clock_time(NOW - timedelta(minutes=one))) for one in (4, 6, 29)]
    assert shown(page, live_server, times) == ["00:01", "24 Nov 23:59", "24 Nov 23:36"]
    assert (
        page.locator("main time").nth(2).get_attribute("title") == "2026-11-24 23:36:00 UTC-05:00"
    )


@NEW_YORK
def test_a_page_has_one_zone(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert
) -> None:
    at = clock.format_timestamp(alert.opened_at)
    Verdict.objects.filter(deployment=alert.deployment).update(
        sentence=f"Roll back 2026.11.3: p50 is 31% slower since {at}."
    )
    page, root = sign_in(user), f"{live_server.url}/p/{alert.project.slug}/"
    model = f"models/{alert.deployment.model_id}/"
    version = f"{model}versions/{alert.deployment.version_id}/"
    found = []
    for address in (
        "",
        "alerts/",
        f"alerts/{alert.number}/",
        model,
        f"{model}compare",
        f"{model}instances/",
        version,
    ):
        page.goto(root + address)
        page.wait_for_load_state("networkidle")
        found += [
            f"{address}: {text}" for text in FOREIGN.findall(page.locator("main").inner_text())
        ]
        texts = page.locator("time:not([data-t=ago])").all_inner_texts()
        found += [
            f"{address}: {text}"
            for text in texts
            if text.strip() and not WRITTEN.match(text.strip())
        ]
        assert re.fullmatch(r"Times: UTC-0[45]:00", page.locator("[data-zone]").inner_text())
    assert found == []
