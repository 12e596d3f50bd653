"""Signing in and out in the product's look; nobody signs up; the theme is the person's own."""

from collections.abc import Callable

from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.projects.models import Project, Role
from tests.dashboard.conftest import PASSWORD


def test_a_wrong_password_is_said_and_a_right_one_leads_on(client: Client, user: User) -> None:
    wrong = client.post("/accounts/login/", {"login": "ada", "password": "no"})
    assert b"not correct" in wrong.content
    right = client.post(
        "/accounts/login/?next=/p/ranking/setup/",
        {"login": "ada", "password": PASSWORD, "next": "/p/ranking/setup/"},
    )
    assert right.headers["Location"] == "/p/ranking/setup/"


def test_signing_in_never_leads_to_another_host(client: Client, user: User) -> None:
    answer = client.post(
        "/accounts/login/?next=https://evil.example/",
        {"login": "ada", "password": PASSWORD, "next": "https://evil.example/"},
    )
    assert answer.headers["Location"] == "/"


def test_nobody_signs_up(client: Client, db: None) -> None:
    answer = client.post("/accounts/signup/", {"username": "eve", "password1": PASSWORD})
    assert "location" not in answer.headers
    assert not User.objects.exists()


def test_signing_out_takes_one_button(signed_in: Client) -> None:
    assert b'action="/accounts/logout/"' in signed_in.get("/p/ranking/").content
    signed_in.post("/accounts/logout/")
    assert signed_in.get("/p/ranking/").headers["Location"].startswith("/accounts/login/")


def test_allauths_own_pages_stand_in_the_same_frame(signed_in: Client) -> None:
    for page in ("password/change", "reauthenticate", "logout"):
        html = signed_in.get(f"/accounts/{page}/").content.decode()
        assert 'class="brand"' in html
        assert "<style" not in html


def test_the_theme_is_kept_and_comes_back_to_the_page(signed_in: Client, user: User) -> None:
    answer = signed_in.post("/account/theme/", {"theme": "dark", "next": "/p/ranking/setup/"})
    assert answer.headers["Location"] == "/p/ranking/setup/"
    assert '<html lang="en" data-theme="dark">' in signed_in.get("/p/ranking/").content.decode()
    assert AuditEntry.objects.get(action="user.theme").address == "127.0.0.1"
    assert signed_in.post("/account/theme/", {"theme": "neon"}).status_code == 400
    assert (
        signed_in.post("/account/theme/", {"theme": "light", "next": "//evil.example/"}).headers[
            "Location"
        ]
        == "/"
    )
    assert (
        signed_in.post("/account/theme/", {"theme": "light", "next": "fleet"}).headers["Location"]
        == "fleet"
    )  # an address, no name of ours


def test_two_projects_give_a_list_and_a_switch(
    signed_in: Client, make_project: Callable[[str], Project], user: User
) -> None:
    from dashboard.projects.services import member_add

    member_add(project=make_project("search"), user=user, role=Role.VIEWER)
    assert 'href="/p/search/"' in signed_in.get("/").content.decode()
    assert 'href="/p/search/"' in signed_in.get("/p/ranking/").content.decode()


def test_whoever_has_no_project_is_told_how_to_get_one(
    client: Client, make_user: Callable[..., User]
) -> None:
    client.force_login(make_user("newcomer"))
    assert "You are not a member of a project yet" in client.get("/").content.decode()


def test_no_page_promises_mail_that_nobody_can_send(signed_in: Client) -> None:
    for page in ("email", "password/reset", "confirm-email"):
        assert signed_in.get(f"/accounts/{page}/").status_code == 404


def test_the_icon_is_found_where_browsers_look_for_it(client: Client, db: None) -> None:
    answer = client.get("/favicon.ico")
    assert answer.headers["Location"] == "/static/ui/icon.svg"
    assert client.get(answer.headers["Location"]).headers["Content-Type"] == "image/svg+xml"


def test_who_was_led_to_the_way_in_hears_that_the_page_comes_back(
    client: Client, user: User
) -> None:
    asked = client.get("/p/ranking/alerts/", follow=True).content.decode()
    assert "Sign in to continue" in asked
    assert "Sign in to continue" not in client.get("/", follow=True).content.decode()


def test_a_page_that_a_role_may_not_see_still_leads_to_the_others(
    client: Client, make_user: Callable[..., User], make_project: Callable[[str], Project]
) -> None:
    from dashboard.projects.services import member_add

    viewer, project = make_user("vic"), make_project("search")
    member_add(project=project, user=viewer, role=Role.VIEWER)
    client.force_login(viewer)
    answer = client.get("/p/search/settings/audit/")
    assert answer.status_code == 403
    assert 'href="/p/search/alerts/"' in answer.content.decode()
