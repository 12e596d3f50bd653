"""The administration site is dark if the system is dark, follows the system while open, and uses
the theme that a person chose for the pages."""

from __future__ import annotations

from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User


def test_it_follows_the_system_and_the_choice_of_the_person(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    page = sign_in(user)
    root = page.locator("html")
    page.emulate_media(color_scheme="dark")
    page.goto(f"{live_server.url}/admin/")
    expect(root).to_contain_class("dark")
    page.emulate_media(color_scheme="light")
    expect(root).not_to_contain_class("dark")
    page.emulate_media(color_scheme="dark")
    expect(root).to_contain_class("dark")

    User.objects.filter(pk=user.pk).update(theme="light")
    page.goto(f"{live_server.url}/admin/accounts/user/")
    expect(page.get_by_role("table")).to_be_visible()
    expect(root).not_to_contain_class("dark")
    User.objects.filter(pk=user.pk).update(theme="dark")
    page.emulate_media(color_scheme="light")
    page.reload()
    expect(page.get_by_role("table")).to_be_visible()
    expect(root).to_contain_class("dark")


def test_its_dark_background_matches_the_pages_and_the_current_entry_is_readable(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True, theme="dark")
    page = sign_in(user)
    of_the_pages = page.evaluate("getComputedStyle(document.querySelector('.top')).backgroundColor")
    page.goto(f"{live_server.url}/admin/accounts/user/")
    expect(page.get_by_role("table")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == of_the_pages
    found = (
        Axe().run(page, context="#nav-sidebar", options={"runOnly": ["color-contrast"]}).response
    )
    assert found["passes"] and found["violations"] == [], found["violations"]
