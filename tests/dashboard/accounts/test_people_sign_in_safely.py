"""Sign-in: a second factor, limits on attempts, sessions that expire, and password confirmation for
sensitive actions."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.core.context import request_context
from allauth.mfa.base.internal.flows import check_rate_limit
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client, RequestFactory

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.session_expiry import (
    IDLE_TIMEOUT_S,
    LAST_SEEN_UPDATE_INTERVAL_S,
    MAX_SESSION_AGE_S,
    delete_expired_sessions,
    reset_sign_in_limits,
)
from dashboard.common import clock
from dashboard.common.models import CacheEntry
from dashboard.projects.models import Key, Project
from tests.dashboard.conftest import PASSWORD, sign_in

LOGIN, HOME = "/accounts/login/", "/p/ranking/"


@pytest.fixture(autouse=True)
def _no_tries_before(db: None) -> None:
    reset_sign_in_limits()


def enter(client: Client, password: str = PASSWORD, **more: str) -> Client:
    client.post(LOGIN, {"login": "ada", "password": password, **more})
    return client


def answer_to_right_password(client: Client) -> str:
    """The page that answers the right password."""
    return client.post(LOGIN, {"login": "ada", "password": PASSWORD}).content.decode()


def code(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))


def inside(client: Client) -> bool:
    return client.get(HOME).status_code == 200


def second_step(client: Client) -> tuple[str, list[str]]:
    """Sets up the authenticator app in a signed-in browser; returns its secret and the recovery
    codes."""
    page = client.get("/accounts/2fa/totp/activate/", follow=True)
    if "Confirm your identity" in page.content.decode():
        client.post("/accounts/reauthenticate/", {"password": PASSWORD})
        page = client.get("/accounts/2fa/totp/activate/")
    found = re.search(r'id="totp">(\w+)<', page.content.decode())
    assert found
    shown = client.post(
        "/accounts/2fa/totp/activate/", {"code": code(found[1])}, follow=True
    ).content.decode()
    listed = re.search(r'id="codes">([^<]+)<', shown)
    assert listed
    return found[1], listed[1].split()


def test_the_second_factor_is_required_and_a_recovery_code_works_once(
    client: Client, user: User, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        secret, recovery = second_step(enter(client))
    assert len(recovery) == 10
    stored = Authenticator.objects.get(user=user, type="totp").data["secret"]
    assert secret not in stored
    other = enter(Client())
    assert not inside(other)
    wrong = other.post("/accounts/2fa/authenticate/", {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    other.post("/accounts/2fa/authenticate/", {"code": recovery[0]})
    assert inside(other)
    third = enter(Client())
    third.post("/accounts/2fa/authenticate/", {"code": recovery[0]})
    assert not inside(third)
    assert "9 of 10 left" in other.get("/accounts/2fa/").content.decode()
    done = list(
        AuditEntry.objects.filter(action="user.second_step").values_list("after", flat=True)
    )
    assert {"added": "totp"} in done and {"added": "recovery_codes"} in done


def test_guessing_a_password_is_limited_per_name(client: Client, user: User) -> None:
    for _ in range(5):
        assert (
            "not correct"
            in client.post(LOGIN, {"login": "ada", "password": "wrong"}).content.decode()
        )
    sixth = client.post(LOGIN, {"login": "ada", "password": PASSWORD})
    assert "Too many failed sign-ins" in sixth.content.decode()
    assert not inside(client)
    # The count is in the database: another process of the server, with empty memory, refuses the
    # attempt as well.
    assert CacheEntry.objects.exists()


def test_attempts_for_a_name_count_under_every_port_of_the_host_header(user: User) -> None:
    for port in range(1, 6):
        Client(REMOTE_ADDR=f"203.0.113.{port}", headers={"Host": f"testserver:{port}"}).post(
            LOGIN, {"login": "ada", "password": "wrong"}
        )
    assert "Too many failed sign-ins" in answer_to_right_password(
        Client(REMOTE_ADDR="203.0.113.99", headers={"Host": "testserver:6"})
    )


def test_guessing_at_a_name_does_not_lock_the_second_factor_of_another_person(
    user: User, rf: RequestFactory
) -> None:
    for _ in range(6):
        Client().post(LOGIN, {"login": f"mfa-auth-user-{user.pk}", "password": "wrong"})
    with request_context(rf.post("/")):
        check_rate_limit(user)()


def test_guessing_at_many_names_does_not_reset_the_count_of_one_name(
    client: Client, user: User
) -> None:
    for _ in range(5):
        client.post(LOGIN, {"login": "ada", "password": "wrong"})
    later = datetime.now(UTC) + timedelta(minutes=5)
    CacheEntry.objects.bulk_create(
        CacheEntry(cache_key=f"~{number}", value="", expires=later) for number in range(1000)
    )
    assert "Too many failed sign-ins" in answer_to_right_password(
        client
    ) and "Too many failed sign-ins" in answer_to_right_password(client)


def refused_at_the_eleventh(addresses: list[str]) -> bool:
    """Each attempt uses another name, so that the limit per name does not apply, and the next of
    these addresses."""
    reset_sign_in_limits()
    for number, address in enumerate(addresses):
        answer = Client(REMOTE_ADDR=address).post(
            LOGIN, {"login": f"nobody-{number}", "password": "wrong"}
        )
        assert number == 10 or "Too many failed sign-ins" not in answer.content.decode()
    return "Too many failed sign-ins" in answer.content.decode()


def test_guessing_is_limited_per_address(user: User) -> None:
    assert refused_at_the_eleventh(["203.0.113.7"] * 11)
    assert not refused_at_the_eleventh([f"203.0.113.{last}" for last in range(11)])


def test_the_addresses_of_one_ipv6_network_count_as_one(user: User) -> None:
    assert refused_at_the_eleventh([f"2001:db8:0:1::{last:x}" for last in range(11)])
    assert refused_at_the_eleventh([f"2001:db8:0:1:{last:x}::1" for last in range(11)])
    assert not refused_at_the_eleventh([f"2001:db8:0:{last:x}::1" for last in range(11)])


def test_an_unknown_name_gets_the_answer_of_a_wrong_password(client: Client, user: User) -> None:
    answers = [
        client.post(LOGIN, {"login": name, "password": "wrong"}).content.decode()
        for name in ("ada", "nobody")
    ]
    alerts = [re.findall(r'role="alert">.*?<span>(.*?)</span>', answer) for answer in answers]
    assert alerts[0] == alerts[1] != []


def test_sessions_are_listed_and_all_others_can_be_ended(client: Client, user: User) -> None:
    here, there = enter(client), enter(Client(headers={"user-agent": "Other/1.0"}))
    page = here.get("/accounts/sessions/").content.decode()
    assert "Other/1.0" in page and "Sign out other sessions" in page
    here.post("/accounts/sessions/")
    assert inside(here) and not inside(there)


def test_a_session_expires_without_page_views_or_after_two_weeks(
    user: User, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, stays, now = enter(Client()), enter(Client(), remember="on"), time.time()

    def later(seconds: float) -> None:
        monkeypatch.setattr(clock, "unix", lambda: now + seconds)

    later(LAST_SEEN_UPDATE_INTERVAL_S + 1)
    short.get(HOME, headers={"HX-Request": "true"})
    later(IDLE_TIMEOUT_S - 60)
    assert inside(short)
    later(2 * IDLE_TIMEOUT_S - 120)
    assert inside(short), "the previous page view counts"
    later(3 * IDLE_TIMEOUT_S)
    assert not inside(short) and inside(stays)
    later(MAX_SESSION_AGE_S + 60)
    assert not inside(stays)


def test_background_requests_of_a_page_do_not_extend_the_session(
    user: User, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, now = enter(Client()), time.time()
    for hour in range(1, 12):
        monkeypatch.setattr(clock, "unix", lambda hour=hour: now + hour * 3600)
        client.get("/p/ranking/setup/arrival/", headers={"HX-Request": "true"})
    monkeypatch.setattr(clock, "unix", lambda: now + IDLE_TIMEOUT_S + 60)
    assert not inside(client)


def test_expired_sessions_are_deleted(user: User) -> None:
    enter(Client())
    Session.objects.update(expire_date="2020-01-01T00:00:00Z")
    assert delete_expired_sessions() == 1
    assert not UserSession.objects.exists()


def test_a_sensitive_action_asks_for_the_password_and_then_runs(
    user: User, project: Project
) -> None:
    client = sign_in(Client(), user, ago=3600)
    asked = client.post(
        "/p/ranking/settings/keys/add/", {"kind": "ing", "expires": "", "name": "trainers"}
    )
    assert asked.headers["Location"].startswith("/accounts/reauthenticate/?next=")
    assert not Key.objects.exists()
    wrong = client.post(
        asked.headers["Location"], {"password": "wrong", "next": "/p/ranking/settings/keys/add/"}
    )
    assert not Key.objects.exists() and wrong.status_code == 200
    done = client.post(
        asked.headers["Location"], {"password": PASSWORD, "next": "/p/ranking/settings/keys/add/"}
    )
    assert Key.objects.get().name == "trainers"
    assert 'id="key">cw_ing_' in done.content.decode()
    assert (
        client.post("/p/ranking/settings/keys/add/", {"kind": "ing", "expires": ""}).status_code
        == 200
    )


def test_revoking_a_key_asks_for_no_password(user: User, project: Project) -> None:
    sign_in(Client(), user).post("/p/ranking/settings/keys/add/", {"kind": "ing", "expires": ""})
    sign_in(Client(), user, ago=3600).post(
        f"/p/ranking/settings/keys/{Key.objects.get().pk}/revoke/"
    )
    assert Key.objects.get().revoked_at


def test_a_changed_password_ends_the_other_sessions(client: Client, user: User) -> None:
    here, there = enter(client), enter(Client())
    new = "another horse battery staple"
    here.post(
        "/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new}
    )
    assert not inside(there)
    assert inside(enter(Client(), password=new))
    assert AuditEntry.objects.filter(action="user.password", actor=user).count() == 1


def test_each_account_page_has_the_frame_of_the_product(
    client: Client, user: User, make_user: Callable[..., User]
) -> None:
    second_step(enter(client))
    for part in (
        "2fa/",
        "2fa/totp/deactivate/",
        "2fa/recovery-codes/",
        "2fa/recovery-codes/generate/",
        "sessions/",
        "password/change/",
    ):
        html = client.get(f"/accounts/{part}").content.decode()
        assert 'class="tabs" aria-label="Your account"' in html, part
        assert "<style" not in html and 'style="' not in html
    assert client.get("/accounts/2fa/recovery-codes/download/")["Content-Type"].startswith(
        "text/plain"
    )
