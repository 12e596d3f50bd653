"""Page loads of a benchmark in a browser: milliseconds until a page is usable, and bytes on the
wire."""

from __future__ import annotations

import statistics
import threading
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

from tests.bench.table import Row

CHROMIUM = Path("/usr/bin/chromium")
TIMES = 5
USABLE, WEIGHT = 1000.0, 150.0
DRAWN = {"model": "#trend-charts[data-drawn]"}
"""Selector that exists once a page is usable; the default is the main part of the page."""
LATER = {"compare": "[data-panel=map] > summary"}
"""Selector of a panel that loads when it opens; the time until it is drawn is reported
separately."""
LOADED = "[data-panel] .heatmaplayer image"
PATIENCE = 120_000
PHONE = {"width": 375, "height": 700}
"""A viewport in which the charts of a page are below the fold."""


def opened(pages: dict[str, str], cookies: SimpleCookie) -> list[Row]:
    """Opens every page several times, each with an empty cache, from a server in this process."""
    from django.core.servers.basehttp import (
        ThreadedWSGIServer,
        WSGIRequestHandler,
        get_internal_wsgi_application,
    )
    from playwright.sync_api import sync_playwright

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Writes no log."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_internal_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://localhost:{server.server_port}"
    known = [{"name": name, "value": one.value, "url": at} for name, one in cookies.items()]
    found: list[Row] = []
    try:
        with sync_playwright() as playwright:
            where = {"executable_path": str(CHROMIUM)} if CHROMIUM.exists() else {}
            browser = playwright.chromium.launch(
                args=["--headless", "--no-sandbox", "--disable-gpu"], **where
            )
            for what, address in pages.items():
                found += _rows(
                    what, [_open(browser, at + address, known, what) for _ in range(TIMES)]
                )
                if what in LATER:
                    found.append(
                        _later(
                            what,
                            [
                                _opened(browser, at + address, known, LATER[what])
                                for _ in range(TIMES)
                            ],
                        )
                    )
            browser.close()
    finally:
        server.shutdown()
    return found


def _rows(what: str, visits: list[tuple[float, float]]) -> list[Row]:
    usable, weight = statistics.median(took for took, _ in visits), visits[-1][1] / 1000
    print(
        f"{what:14} usable after {usable:6.0f} ms (of {TIMES} visits with an empty cache), "
        f"{weight:6.1f} kB over the wire",
        flush=True,
    )
    trend = what.startswith("model")
    return [
        Row(f"page {what}, usable in Chromium", "ms", usable, goal=USABLE),
        Row(f"page {what}, over the wire", "kB", weight, goal=WEIGHT if trend else None),
    ]


def _later(what: str, took: list[float]) -> Row:
    drawn = statistics.median(took)
    print(f"{what:14} heat map drawn {drawn:6.0f} ms after it is opened", flush=True)
    return Row(f"page {what}, heat map drawn once open", "ms", drawn)


def _opened(browser: Any, address: str, cookies: list[dict[str, str]], chart: str) -> float:
    """Milliseconds from opening a panel until it is drawn."""
    context = browser.new_context(viewport=PHONE)
    context.set_default_timeout(PATIENCE)
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    began = page.evaluate("performance.now()")
    page.locator(chart).first.click()
    page.wait_for_selector(LOADED, state="attached")
    took = float(page.evaluate("performance.now()") - began)
    context.close()
    return took


def _open(
    browser: Any, address: str, cookies: list[dict[str, str]], what: str
) -> tuple[float, float]:
    """Milliseconds from the navigation until the page is usable, and the bytes of the whole
    page."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    context.add_cookies(cookies)
    page, received = context.new_page(), []
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_selector(DRAWN.get(what.split(",")[0], "main"), state="attached")
    took = page.evaluate("performance.now()")
    page.wait_for_load_state("networkidle")
    context.close()
    return took, sum(received)
