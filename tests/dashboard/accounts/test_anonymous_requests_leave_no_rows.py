"""Visitors who are not signed in leave no session behind, on any page and with any request. The
session of a sign-in at a provider expires after an hour, and the number of such sessions is
limited."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

from dashboard.accounts.models import User
from dashboard.accounts.session_expiry import delete_expired_sessions, reset_sign_in_limits
from dashboard.common import clock
from dashboard.projects.models import Project
from tests.dashboard.accounts.openid.way_in import START, callback

SENT = {
    "login": "ada",
    "password": "wrong",
    "code": "000000",
    "username": "new",
    "next": "/p/ranking/",
    "text": "x" * 10_000,
}
PEOPLE = (
    "account/",
    "accounts/",
    "admin/",
    "invitations/",
    "projects/",
    "health/",
    "numbers/",
    "help/",
    "p/",
)
FILLED = {
    "slug": "ranking",
    "provider_id": "sso",
    "token": "unknown",
    "action": "test",
    "instance_id": "0" * 26,
    "object_id": "1",
}


def addresses(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    """Every page for people, with a value for each parameter of the route."""
    for one in patterns:
        if isinstance(one, URLResolver):
            yield from addresses(one.url_patterns, before + str(one.pattern))
        elif (before + str(one.pattern)).startswith(PEOPLE) and isinstance(
            one.pattern, RoutePattern
        ):
            path = before + str(one.pattern)
            for name, converter in one.pattern.converters.items():
                kind = type(converter).__name__.removesuffix("Converter").lower()
                for written in (
                    f"<{kind}:{name}>",
                    f"<{'str' if kind == 'string' else kind}:{name}>",
                    f"<{name}>",
                ):
                    path = path.replace(
                        written, "1" if kind == "int" else FILLED.get(name, "unknown")
                    )
            yield f"/{path}"


def test_no_page_stores_a_session_for_a_visitor(project: Project, user: User) -> None:
    pages = list(addresses(get_resolver().url_patterns))
    kept = []
    for page in pages:
        for method in ("get", "post"):
            reset_sign_in_limits()
            answer = getattr(Client(), method)(page, SENT)
            assert answer.status_code < 500, (method, page)
            if Session.objects.exists():
                kept.append((method, page))
                Session.objects.all().delete()
    assert len(pages) > 100 and kept == []


def test_a_visitor_on_a_second_factor_page_is_redirected_to_the_sign_in(project: Project) -> None:
    answer = Client().post("/accounts/2fa/totp/activate/", SENT)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/login/?next=/")


def test_a_sign_in_at_a_provider_is_stored_for_an_hour_and_limited(
    provider: str, project: Project, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reset_sign_in_limits()
    statuses = [Client().post(START).status_code for _ in range(40)]
    assert set(statuses) == {302, 429} and Session.objects.count() == statuses.count(302) <= 30
    later = clock.unix() + 3700
    monkeypatch.setattr(clock, "unix", lambda: later)
    assert delete_expired_sessions() == statuses.count(302)


def test_a_session_from_the_provider_has_the_usual_expiry(
    client: Client, provider: str, project: Project
) -> None:
    reset_sign_in_limits()
    client.get(callback(client))
    assert client.session.get_expire_at_browser_close() and client.session.get_expiry_age() > 3600
