"""The Version page in a real browser: both themes, a phone, hostile names; selection of a start and
setting of budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Request
from compilewatch.wire.numerics import Parity, parity_data
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.ingest.batch import batch_read
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import CONFIGURED, MISS, Story, url_of

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}" + "v" * 90


def parity(
    state: Any, error: float | None, name: str = "batch of 16", why: str = ""
) -> dict[str, Any]:
    """The report of a golden batch, with hostile names."""
    numbers = {
        "error": error,
        "eager_error": 9e-4,
        "tolerance": 2e-3,
        "reference": "float64",
        "nonfinite": 1200,
    }
    return parity_data(
        Parity(name, state, why, region=HOSTILE, where="output['logits']", **numbers)
    )  # type: ignore[arg-type]


def live() -> list[dict[str, Any]]:
    """The report of sampled calls, with hostile names."""
    shadow = Parity(
        f"shadow calls of {HOSTILE}",
        "failed",
        region=HOSTILE,
        kind="shadow",
        where="output['logits']",
        error=0.2,
        tolerance=1e-2,
    )
    timed = replace(
        shadow,
        samples=1204,
        beyond=40,
        timed=1203,
        relative=0.04,
        compiled_seconds=0.0021,
        eager_seconds=0.0039,
    )
    values = Parity("values of forward", "passed", region="forward", kind="finite", samples=5200)
    left = Parity(
        "shadow calls of decode",
        "not compared",
        region="decode",
        kind="shadow",
        why=f"it keeps state: {HOSTILE} changes",
    )
    return [parity_data(one) for one in (timed, values, left)]


@pytest.fixture
def story(project: Project) -> Story:
    """Three warm starts of one version and three of another with hostile name, hosts and causes;
    one start is over its budget."""

    def store(request: Request) -> None:
        reports_store(
            [batch_read(text=dumps(request), project_id=project.pk, received=clock.unix())]
        )

    made = Story(store)
    for number in range(3):
        made.start(
            "1",
            compiling=10.0 + number,
            ago=50 - number,
            key="ak1",
            parities=[parity("passed", 1e-3)],
        )
    hostile = {**CONFIGURED, f"env {HOSTILE}"[:60]: "77aa11bb"}
    kernels = [
        {"kernel mm 1a2b3c": "triton_mm 99aa00"},
        {"kernel mm 1a2b3c": f"{HOSTILE}"[:100]},
        {},
    ]
    for number in range(3):
        host = f"{HOSTILE[:60]}-{number}"
        made.start(
            HOSTILE, compiling=40.0 + 30 * number, ago=4, cache=MISS, miss=NO_EARLIER_RUN, key="ak2", components=hostile | kernels[number],
            host=host,
            reason=HOSTILE, frame=HOSTILE, kind="recompile" if number else "first", in_request=bool(number), eager=20,
            identity={"capabilities": {"gpu_time": ("no", HOSTILE)}},
            parities=[parity("failed", 0.2), parity("not compared", None, name=HOSTILE, why=HOSTILE), *live()] if number else [],
        )  # fmt: skip
    made.fold()
    return made


def test_the_page_is_accessible(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    for theme, window in (("dark", PHONE), ("light", DESK)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size(window)  # type: ignore[arg-type]
        page.goto(live_server.url + url_of(project, HOSTILE))
        page.locator("details.twin summary").click()
        violations = Axe().run(page).response["violations"]
        assert [
            (one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations
        ] == [], theme
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), theme
    assert page.locator("main img, main script").count() == 0
    for name in ("cold-start", "compile-events"):
        with page.expect_download() as saved:
            page.locator(f"[data-name={name}]").click()
        assert (
            saved.value.suggested_filename == f"{name}.png"
            and saved.value.path().stat().st_size > 2000
        )
    page.get_by_role("region", name="Table of starts").get_by_role("link").first.click()
    expect(
        page.get_by_role("region", name="Table of starts").locator("[aria-current]")
    ).to_have_count(1)
    page.locator("summary", has_text="Budgets").click()
    page.get_by_label("Served compiled, % of calls").fill("99.5")
    page.get_by_label("Cold start, seconds").fill("100")
    page.get_by_role("button", name="Save budgets").click()
    expect(page.get_by_text("budget 99.5%")).to_be_visible()
    expect(page.get_by_text("1 of 3 over")).to_be_visible()


def test_a_drawing_that_is_wider_than_a_phone_shows_a_hint(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(live_server.url + url_of(project, HOSTILE))
    wider = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    assert page.locator(".body.scroll").evaluate_all(wider) == 2
    expect(page.get_by_text("drag it sideways").filter(visible=True)).to_have_count(2)
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    assert page.locator(".body.scroll").evaluate_all(wider) == 0
    expect(page.get_by_text("drag it sideways").filter(visible=True)).to_have_count(0)
