"""Attacks on the callback of the provider: used answers, answers of another browser, and open
redirects."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from dashboard.accounts.allauth_adapters import SocialAccountAdapter
from dashboard.accounts.models import User
from dashboard.projects.models import Member, Project, Role
from tests.dashboard.accounts.openid.front import PERSON, Front, signed
from tests.dashboard.accounts.openid.way_in import START, callback, refused

MAIL = "mara@example.com"


def parts(path: str) -> tuple[str, str]:
    """The code and the state of a callback URL."""
    asked = parse_qs(urlsplit(path).query)
    return asked["code"][0], asked["state"][0]


def back(code: str, state: str) -> str:
    return f"{START}callback/?code={code}&state={state}"


def begun(client: Client) -> str:
    """The state of a sign-in that starts in this browser."""
    return parse_qs(urlsplit(client.post(START).headers["Location"]).query)["state"][0]


def test_a_callback_counts_once(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    path = callback(client)
    client.get(path)
    client.post("/accounts/logout/")
    User.objects.all().delete()
    refused(client, path, caplog, "no pending sign-in")


def test_a_used_code_is_refused_with_a_new_state(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    code, _ = parts(callback(client))
    first = begun(client)
    refused(client, back(code, first), caplog, "Error retrieving access token")


def test_a_code_of_another_browser_is_refused(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    code, _ = parts(callback(Client()))
    refused(client, back(code, begun(client)), caplog, "Error retrieving access token")


def test_a_state_of_another_browser_is_refused(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    code, _ = parts(callback(client))
    refused(client, back(code, begun(Client())), caplog, "no pending sign-in")


@pytest.mark.parametrize(
    "query",
    ["", "?code=x", "?state=", "?state=x&code=", "?state=%00&code=%00", "?state[]=x&code[]=y"],
)
def test_a_callback_without_a_request_creates_nothing(
    client: Client, front: Front, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused(client, f"{START}callback/{query}", caplog, "no pending sign-in")
    assert not Session.objects.exists() and front.asked == []


@pytest.mark.parametrize(
    "told", ["<script>alert(1)</script>", "x\r\nWARNING forged line", "y" * 5000]
)
def test_an_error_of_the_provider_appears_only_in_the_log(
    client: Client, front: Front, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = f"&error={quote(told)}&error_description={quote(told)}&error_uri={quote(told)}"
    state = begun(client)
    refused(client, f"{START}callback/?state={state}{told}", caplog, "the provider returned error=")
    assert max(len(record.getMessage()) for record in caplog.records) < 400
    page = client.get(f"{START}callback/?state={begun(client)}{told}").content.decode()
    assert (
        "<script>alert" not in page
        and "alert(1)" not in page
        and "forged" not in page
        and "yyy" not in page
    )


def test_a_flood_of_callbacks_without_a_request_is_one_log_line_a_minute(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "dashboard"):
        for number in range(50):
            assert (
                Client().get(f"{START}callback/?state={number}&code=x&error={number}").status_code
                == 401
            )
    assert (
        len([one for one in caplog.records if one.name == "dashboard.accounts.allauth_adapters"])
        == 1
    )


@pytest.mark.parametrize(
    "sent",
    [
        "redirect_uri=https://evil/",
        "state=known",
        "nonce=x",
        "client_id=another",
        "response_type=token",
        "prompt=none",
    ],
)
def test_a_link_cannot_choose_parameters_of_the_authorization_request(
    client: Client, front: Front, sent: str
) -> None:
    away = client.post(f"{START}?auth_params={quote(sent, safe='')}&scope=admin")
    asked = parse_qs(urlsplit(away.headers["Location"]).query)
    name, _, wanted = sent.partition("=")
    assert wanted not in asked.get(name, [])
    assert set(asked["scope"][0].split()) == {"openid", "profile", "email"}


@pytest.fixture
def ada(project: Project, make_user: Callable[..., User]) -> User:
    """An administrator with the mail address that the provider's person claims."""
    local = make_user("ada", project, Role.ADMIN)
    local.email = MAIL
    local.save()
    return local


@pytest.mark.parametrize("verified", [True, False, "true", None])
def test_a_mail_address_takes_over_no_account(
    client: Client, front: Front, ada: User, verified: object
) -> None:
    front.changes[PERSON] = lambda told: (
        told | {"email": MAIL, "email_verified": verified, "preferred_username": "ada"}
    )
    client.get(callback(client))
    assert SocialAccount.objects.get().user != ada
    assert client.session["_auth_user_id"] != str(ada.pk)
    assert client.get("/p/ranking/").status_code == 404 and Member.objects.get().user == ada


def test_the_same_mail_address_under_another_subject_is_another_person(
    client: Client, front: Front, project: Project
) -> None:
    client.get(callback(client))
    mara = User.objects.get()
    Member.objects.create(
        project=project, user=mara, role=Role.ADMIN, created_at=project.created_at
    )
    front.forge(lambda claims: signed(claims | {"sub": "1000"}))
    front.changes[PERSON] = lambda told: told | {"sub": "1000"}
    thief = Client()
    thief.get(callback(thief))
    assert thief.session["_auth_user_id"] != str(mara.pk)
    assert thief.get("/p/ranking/").status_code == 404 and User.objects.count() == 2


def test_a_person_with_a_closed_account_is_refused(
    client: Client, front: Front, settings: LazySettings
) -> None:
    client.get(callback(client))
    User.objects.update(is_active=False)
    again = Client()
    again.get(callback(again), follow=True)
    assert "_auth_user_id" not in again.session


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_first_sign_ins_create_one_account(
    front: Front, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    together, allowed = Barrier(2), SocialAccountAdapter.is_auto_signup_allowed

    def both(*args: Any) -> bool:
        together.wait(30)  # both requests have found no account for this person
        return bool(allowed(*args))

    monkeypatch.setattr(SocialAccountAdapter, "is_auto_signup_allowed", both)
    tabs = [Client(raise_request_exception=False) for _ in range(2)]
    paths = [callback(tab) for tab in tabs]

    def come(tab: Client, path: str) -> int:
        try:
            return tab.get(path).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as two:
        statuses = sorted(two.map(come, tabs, paths))
    assert statuses == [302, 401] and User.objects.count() == 1
    assert "signed in twice" in caplog.text
