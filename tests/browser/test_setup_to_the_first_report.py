"""The steps of a new user: create a key, copy it into a job, and watch the page turn green
automatically."""

from collections.abc import Callable

from compilewatch.wire.codec import dumps
from playwright.sync_api import Page, expect

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.ingest.batch import batch_read
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project
from tests.dashboard.requests import request_make
from tests.dashboard.ui.factory import Shape, model


def test_from_an_empty_project_to_the_first_report(
    sign_in: Callable[[User], Page], user: User, project: Project
) -> None:
    page = sign_in(user)
    page.get_by_role("link", name="Set up a job").click()
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#key").inner_text()
    assert key.startswith("cw_ing_")
    expect(page.locator("#env")).to_contain_text(f"COMPILEWATCH_API_KEY={key}")
    waiting = page.locator("[role=status]", has_text="Waiting for the first report.")
    expect(waiting).to_be_visible()

    sent = request_make(model="ranker", version="7", minutes=1, end=clock.unix())
    reports_store([batch_read(text=dumps(sent), project_id=project.pk, received=clock.unix())])
    expect(page.get_by_text("First report received")).to_be_visible(timeout=30_000)
    model(project, "ranker", [Shape("7", 0.01, 100, 30, instances=1)], every=10)
    expect(page.get_by_text("Receiving reports.")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="View the fleet").last.click()
    expect(page.locator("table.ft")).to_contain_text("ranker")


def test_a_wrong_channel_shows_an_error_at_its_field(
    sign_in: Callable[[User], Page], user: User, project: Project, complaints: list[str]
) -> None:
    page = sign_in(user)
    page.goto(page.url + "settings/messages/")
    page.get_by_label("Name", exact=True).fill("#ml-ops")
    page.get_by_label("Address").fill("http://10.0.0.1/hook")
    page.get_by_role("button", name="Add channel").click()
    expect(page.locator("#eaddr")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    assert all("400" in complaint for complaint in complaints)
    complaints.clear()
