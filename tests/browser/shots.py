"""Screenshots of the pages for the guide, taken from a running `make demo`: `python -m
tests.browser.shots --password ...`.

All content comes from the demo and is marked as simulated. Chromium takes the screenshots and
encodes them as WebP."""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.machine import chromium

PLACE = Path(__file__).resolve().parents[2] / "dashboard" / "ui" / "pictures"
PROJECT = "/p/simulated-fleet"
DESK, PHONE = (1280, 860), (375, 812)
SHOTS = {
    "fleet": ("", DESK, "light"),
    "fleet-dark": ("", DESK, "dark"),
    "model": ("models/1/", DESK, "light"),
    "model-phone": ("models/1/", PHONE, "light"),
    "compare": ("models/1/compare", DESK, "light"),
    "alert": ("alerts/1/", DESK, "light"),
    "ranks": ("models/4/ranks/?env=training", DESK, "light"),
}
HEAVIEST = 60_000
AS_WEBP = """([png, quality]) => new Promise((done) => { const image = new Image(); image.onload = () => {
  const canvas = document.createElement('canvas'); canvas.width = image.width; canvas.height = image.height;
  canvas.getContext('2d').drawImage(image, 0, 0); done(canvas.toDataURL('image/webp', quality).split(',')[1]); };
  image.src = 'data:image/png;base64,' + png; })"""


def main() -> int:
    """Takes every screenshot again; 1 if one is too large for the guide."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at", default="http://127.0.0.1:8000")
    parser.add_argument("--name", default="demo")
    parser.add_argument("--password", required=True)
    options = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            args=["--headless", "--no-sandbox", "--disable-gpu"],
            **({"executable_path": found} if (found := chromium()) else {}),
        )
        page, press = browser.new_page(), browser.new_page()
        page.set_default_timeout(120_000)
        sign_in(page, options)
        sizes = {name: taken(page, press, options.at, name) for name in SHOTS}
        browser.close()
    for name, size in sizes.items():
        print(f"{name:12} {size / 1000:5.1f} kB")
    return 1 if max(sizes.values()) > HEAVIEST else 0


def sign_in(page: Page, options: Any) -> None:
    """Signs in like a person."""
    page.goto(f"{options.at}/accounts/login/")
    page.get_by_label("Name").fill(options.name)
    page.get_by_label("Password").fill(options.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda address: "/accounts/" not in address)


def taken(page: Page, press: Page, at: str, name: str) -> int:
    """Takes one screenshot; returns its size in bytes."""
    path, (width, height), theme = SHOTS[name]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.goto(f"{at}{PROJECT}/{path}")
    page.wait_for_load_state("networkidle")
    png = base64.b64encode(page.screenshot()).decode()
    webp = base64.b64decode(press.evaluate(AS_WEBP, [png, 0.34]))
    (PLACE / f"{name}.webp").write_bytes(webp)
    return len(webp)


if __name__ == "__main__":
    sys.exit(main())
