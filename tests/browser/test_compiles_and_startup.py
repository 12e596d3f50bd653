"""The Compiles and Startup tabs in a real browser: both themes, every width, hostile names; folds,
sorting, selection of a start, a forecast, and budgets."""

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
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.ingest.batch import batch_read
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import CONFIGURED, MISS, TABS, Story, tab_of

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


WIDTHS = (320, 375, 820, 1440, 2560)


def violations(page: Page) -> list[tuple[str, list[str]]]:
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found]


def test_both_tabs_are_accessible_and_fit_every_width(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    for tab in TABS:
        for theme, width in (("dark", PHONE["width"]), ("light", DESK["width"])):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(live_server.url + tab_of(project, HOSTILE, tab))
            for summary in page.locator("details.more > summary").all():
                if not summary.evaluate("one => one.parentElement.open"):
                    summary.click()
            assert violations(page) == [], (tab, theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (tab, width)
        assert page.locator("main img, main script").count() == 0, tab


def test_text_of_drawings_keeps_its_size_at_every_width(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    for tab in TABS:
        page.goto(live_server.url + tab_of(project, HOSTILE, tab))
        for width in (375, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            sizes = page.locator("main svg.chart text").evaluate_all(
                "all => all.filter(one => one.getBoundingClientRect().width).map(one =>"
                " parseFloat(getComputedStyle(one).fontSize)"
                " * (one.getScreenCTM() ? one.getScreenCTM().d : 1))"
            )
            assert sizes and min(sizes) >= 11, (tab, width, sizes)


def test_drawings_are_saved_and_compilations_are_listed_and_sorted(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + tab_of(project, HOSTILE, "compiles"))
    for name in ("compilations", "compile-phases"):
        with page.expect_download() as saved:
            page.locator(f"[data-name={name}]").click()
        assert (
            saved.value.suggested_filename == f"{name}.png"
            and saved.value.path().stat().st_size > 1000
        )
    table = page.get_by_role("region", name="Table of compilations")
    took = table.locator("td.num").all_inner_texts()
    assert [text.replace("\u00a0", " ") for text in took] == ["1 min 40 s", "1 min 10 s", "40 s"]
    table.get_by_role("link", name="Duration").click()
    expect(table.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")


def test_a_start_is_selected_forecast_and_compared_with_a_budget(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    story: Story,
) -> None:
    page = sign_in(user)
    page.goto(live_server.url + tab_of(project, HOSTILE, "startup"))
    slowest = page.get_by_label("Start to draw").locator("option").first.inner_text()
    expect(page.locator(".wrow.ready b").nth(1)).not_to_have_text(slowest.rsplit(", ", 1)[1])
    page.get_by_label("Start to draw").select_option(index=0)
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".wrow.ready b").nth(1)).to_have_text(slowest.rsplit(", ", 1)[1])
    expect(page.get_by_label("Start to draw").locator("option[selected]")).to_have_text(slowest)
    page.get_by_label("Replicas").fill("64")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("until the last of 64 is warm")).to_be_visible()
    page.locator("#all-starts summary").click()
    starts = page.get_by_role("region", name="Table of starts")
    starts.get_by_role("link").last.click()
    page.locator("#all-starts summary").click()
    expect(starts.locator("[aria-current]")).to_have_count(1)
    page.locator("summary", has_text="Budgets").click()
    page.get_by_label("Served compiled, % of calls").fill("99.5")
    page.get_by_label("Cold start, seconds").fill("100")
    page.get_by_role("button", name="Save budgets").click()
    expect(page.get_by_text("1 of 3 over")).to_be_visible()
    page.get_by_role("link", name="Compiles").click()
    expect(page.get_by_text("budget 99.5%")).to_be_visible()


def test_without_scripts_both_tabs_show_drawings_and_forms(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    browser: Browser,
    user: User,
    project: Project,
    story: Story,
) -> None:
    context = browser.new_context(
        java_script_enabled=False, storage_state=sign_in(user).context.storage_state()
    )
    page = context.new_page()
    page.goto(live_server.url + tab_of(project, HOSTILE, "compiles"))
    expect(page.locator("#compilation-bars rect").first).to_be_visible()
    expect(page.locator("#phase-icicle rect").first).to_be_visible()
    page.goto(live_server.url + tab_of(project, HOSTILE, "startup"))
    fastest = page.get_by_label("Start to draw").locator("option").last.inner_text()
    page.get_by_label("Start to draw").select_option(index=2)
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".wrow.ready b").nth(1)).to_have_text(fastest.rsplit(", ", 1)[1])
    context.close()
