"""Every page in both themes and on a phone: axe finds nothing, nothing overflows, the browser has
no complaint."""

from collections.abc import Callable, Iterable

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.fleet.models import Finding, Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import compilations, finding
from tests.dashboard.ui.test_ranks_of_a_job_are_shown_in_one_table import compiled, rank

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
BOTH = pytest.mark.parametrize(
    ("theme", "window"), [("light", DESK), ("dark", PHONE)], ids=["light-desk", "dark-phone"]
)
"""Colours depend on the theme and widths on the window, so these two combinations find the same
faults as all four."""
ACCOUNT = (
    "/numbers/",
    "/ui/components",
    "/api/v1/",
    "/projects/new/",
    "/accounts/2fa/",
    "/accounts/2fa/totp/activate/",
    "/accounts/sessions/",
    "/accounts/password/change/",
    "/accounts/reauthenticate/",
)


def addresses(alert: Alert) -> list[str]:
    return [
        "/p/search-and-chat/",
        "/p/search-and-chat/alerts/",
        "/p/search-and-chat/alerts/grades/",
        f"/p/search-and-chat/alerts/{alert.number}/",
        "/p/search-and-chat/setup/",
        "/p/search-and-chat/health/",
        "/p/search-and-chat/settings/judging/",
        "/p/search-and-chat/settings/messages/",
        "/p/search-and-chat/settings/guides/",
    ]


def check(page: Page, *addresses: str) -> None:
    assert [fault for address in addresses for fault in faults(page, address)] == []


def faults(page: Page, address: str) -> Iterable[str]:
    """The faults of a page, one sentence each."""
    answer = page.goto(address)
    page.wait_for_load_state("networkidle")
    if answer is None or answer.status not in (200, 404):
        yield f"{address} answers {answer.status if answer else 'nothing'}"
    for found in Axe().run(page).response["violations"]:
        yield f"{address}: {found['id']} {[node['html'] for node in found['nodes']][:3]}"
    if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
        yield f"{address} is wider than the window"


@pytest.fixture
def compared(project: Project) -> Made:
    """A model with two versions, findings, recompilations, and a training job with diverged
    ranks."""
    made = charted(
        project,
        Plan("1", start=70, per_gpu=1),
        Plan("2", start=40, per_gpu=1, eager=0.3),
        name="compared",
    )
    finding(
        made,
        "guard",
        "candidates.size(0): expected 64, actual 72",
        "ranker/score.py:118",
        {"2": 53},
    )
    finding(
        made,
        "graph_break",
        "Tensor.item()\nCalling .item() breaks the graph",
        "ranker/features.py:61",
        {"1": 4, "2": 4},
    )
    compilations(made, "2")
    for number in range(4):
        one = rank(made, number)
        for entry in range(2 if number == 2 else 1):
            compiled(
                one, entry, kind="recompile" if entry else "first", cache="miss" if entry else "hit"
            )
    return made


def pages_of(made: Made) -> list[str]:
    """Every page of a model and its parts, and of the settings."""
    project = f"/p/{made.project.slug}/"
    host = Instance.objects.filter(version=made.versions["2"]).order_by("pk")[0]
    one = Finding.objects.filter(model=made.model, kind="guard").get()
    of_model = [
        made.url(part)
        for part in (
            "",
            "instances/",
            f"instances/{host.instance_id}/",
            "ranks/?job=train-7",
            "switch/",
        )
    ]
    of_model += [made.url(f"versions/{made.versions['2'].pk}/"), made.pair("1", "2")]
    parts = [
        "findings/",
        f"findings/{one.pk}/",
        "search/",
        "search/?q=2",
        "settings/members/",
        "settings/keys/",
        "settings/data/",
    ]
    return [*of_model, *(project + part for part in [*parts, "settings/audit/"])]


@BOTH
def test_pages_with_content(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    alert: Alert,
    theme: str,
    window: dict[str, int],
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size(window)  # type: ignore[arg-type]
    check(page, *(live_server.url + address for address in addresses(alert)))


@BOTH
def test_pages_of_a_model_of_the_settings_and_of_an_account(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    compared: Made,
    theme: str,
    window: dict[str, int],
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size(window)  # type: ignore[arg-type]
    check(page, *(live_server.url + address for address in (*pages_of(compared), *ACCOUNT)))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_empty_pages(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    theme: str,
) -> None:
    page = sign_in(user)
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    parts = (
        "",
        "alerts/",
        "alerts/grades/",
        "findings/",
        "setup/",
        "health/",
        "settings/judging/",
        "settings/messages/",
        "settings/keys/",
    )
    check(page, *(f"{live_server.url}/p/search-and-chat/{part}" for part in parts))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_outside_a_project(
    page: Page, live_server: LiveServer, complaints: list[str], theme: str
) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    check(page, f"{live_server.url}/accounts/login/", f"{live_server.url}/no/such/page/")
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


def test_long_names_do_not_break_a_phone(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, alert: Alert
) -> None:
    deployment = alert.deployment
    deployment.model.name, deployment.version.name = "m" * 200, "v" * 200
    deployment.model.save()
    deployment.version.save()
    page = sign_in(user)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    check(page, *(live_server.url + address for address in addresses(alert)))
