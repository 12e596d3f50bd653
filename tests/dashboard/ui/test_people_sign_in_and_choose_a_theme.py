"""Sign-in and sign-out in the product's design; no sign-up; each user has a theme."""

from collections.abc import Callable

from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.projects.models import Project, Role
from tests.dashboard.conftest import PASSWORD


def test_a_wrong_password_is_reported_and_a_right_one_redirects(client: Client, user: User) -> None:
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


def test_sign_up_is_disabled(client: Client, db: None) -> None:
    answer = client.post("/accounts/signup/", {"username": "eve", "password1": PASSWORD})
    assert "location" not in answer.headers
    assert not User.objects.exists()


def test_one_button_signs_out(signed_in: Client) -> None:
    assert b'action="/accounts/logout/"' in signed_in.get("/p/ranking/").content
    signed_in.post("/accounts/logout/")
    assert signed_in.get("/p/ranking/").headers["Location"].startswith("/accounts/login/")


def test_pages_of_allauth_have_the_same_frame(signed_in: Client) -> None:
    for page in ("password/change", "reauthenticate", "logout"):
        html = signed_in.get(f"/accounts/{page}/").content.decode()
        assert 'class="brand"' in html
        assert "<style" not in html


def test_the_theme_is_stored_and_the_user_returns_to_the_page(
    signed_in: Client, user: User
) -> None:
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
    )  # an address, not a name of the product


def test_two_projects_show_a_list_and_a_project_menu(
    signed_in: Client, make_project: Callable[[str], Project], user: User
) -> None:
    from dashboard.projects.services import member_add

    member_add(project=make_project("search"), user=user, role=Role.VIEWER)
    assert 'href="/p/search/"' in signed_in.get("/").content.decode()
    assert 'href="/p/search/"' in signed_in.get("/p/ranking/").content.decode()


def test_a_user_without_a_project_reads_how_to_get_one(
    client: Client, make_user: Callable[..., User]
) -> None:
    client.force_login(make_user("newcomer"))
    assert "You are not a member of a project yet" in client.get("/").content.decode()


def test_pages_that_need_mail_do_not_exist(signed_in: Client) -> None:
    for page in ("email", "password/reset", "confirm-email"):
        assert signed_in.get(f"/accounts/{page}/").status_code == 404


def test_the_icon_is_at_the_address_that_browsers_request(client: Client, db: None) -> None:
    answer = client.get("/favicon.ico")
    assert answer.headers["Location"] == "/static/ui/icon.svg"
    assert client.get(answer.headers["Location"]).headers["Content-Type"] == "image/svg+xml"


def test_a_user_redirected_to_the_sign_in_page_reads_that_the_page_follows(
    client: Client, user: User
) -> None:
    asked = client.get("/p/ranking/alerts/", follow=True).content.decode()
    assert "Sign in to continue" in asked
    assert "Sign in to continue" not in client.get("/", follow=True).content.decode()


def test_a_forbidden_page_links_to_the_allowed_pages(
    client: Client, make_user: Callable[..., User], make_project: Callable[[str], Project]
) -> None:
    from dashboard.projects.services import member_add

    viewer, project = make_user("vic"), make_project("search")
    member_add(project=project, user=viewer, role=Role.VIEWER)
    client.force_login(viewer)
    answer = client.get("/p/search/settings/audit/")
    assert answer.status_code == 403
    assert 'href="/p/search/alerts/"' in answer.content.decode()
