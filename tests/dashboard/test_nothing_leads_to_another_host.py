"""`next` redirects only to the dashboard's own pages, for any value."""

from urllib.parse import urljoin, urlsplit

from django.test import Client

from dashboard.accounts.models import User
from dashboard.accounts.session_expiry import reset_sign_in_limits
from dashboard.projects.models import Project
from tests.dashboard.conftest import PASSWORD, sign_in

ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https:evil.example",
    "http://testserver@evil.example/",
    "https://testserver.evil.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "%2f%2fevil.example",
    "/%09/evil.example",
    "\t//evil.example",
    "ftp://testserver/",
    "https://evil.example\\@testserver/",
]


def stays_on_dashboard(location: str) -> bool:
    """Whether a browser on a page of the dashboard would stay on the dashboard: browsers ignore
    tabs and newlines, and read a backslash as a slash."""
    read = location.translate({9: None, 10: None, 13: None}).replace("\\", "/")
    parts = urlsplit(urljoin("http://testserver/accounts/login/", read))
    return (parts.scheme, parts.netloc) == ("http", "testserver")


def test_no_sign_in_page_redirects_to_another_host(user: User, project: Project) -> None:
    fresh, stale = sign_in(Client(), user), Client()
    for where in ELSEWHERE:
        reset_sign_in_limits()
        sign_in(stale, user, ago=3600)
        answers = {
            "sign in": Client().post(
                "/accounts/login/", {"login": "ada", "password": PASSWORD, "next": where}
            ),
            "theme": fresh.post("/account/theme/", {"theme": "dark", "next": where}),
            "once more": stale.post(
                "/accounts/reauthenticate/", {"password": PASSWORD, "next": where}
            ),
            "sign out": stale.post("/accounts/logout/", {"next": where}),
        }
        for way, answer in answers.items():
            assert answer.status_code == 302 and stays_on_dashboard(answer.headers["Location"]), (
                way,
                where,
            )
