"""Attacks on the second factor: an observed code, a guessed code, a bypass, and a planted
session."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from dashboard.accounts.models import User
from dashboard.accounts.session_expiry import reset_sign_in_limits
from tests.dashboard.accounts.test_people_sign_in_safely import (
    HOME,
    code,
    enter,
    inside,
    second_step,
)

STEP = "/accounts/2fa/authenticate/"


@pytest.fixture
def secret(user: User) -> str:
    """The secret of the app of `ada`, who has a second factor."""
    reset_sign_in_limits()
    return second_step(enter(Client()))[0]


def test_a_used_code_is_refused(secret: str) -> None:
    seen = code(secret)
    first, second = enter(Client()), enter(Client())
    first.post(STEP, {"code": seen})
    second.post(STEP, {"code": seen})
    assert not inside(second)


def test_guessing_codes_is_limited(secret: str) -> None:
    guesser = enter(Client())
    answers = [guesser.post(STEP, {"code": f"{number:06d}"}) for number in range(12)]
    assert "Too many" in answers[-1].content.decode() or answers[-1].status_code == 429
    guesser.post(STEP, {"code": code(secret)})
    assert not inside(guesser), "the right code is refused while attempts are limited"


@pytest.mark.parametrize(
    "path",
    [
        HOME,
        "/account/",
        "/accounts/2fa/",
        "/accounts/password/change/",
        "/accounts/2fa/totp/deactivate/",
        "/accounts/sessions/",
    ],
)
def test_a_password_alone_opens_no_page(secret: str, path: str) -> None:
    half = enter(Client())
    answer = half.get(path)
    assert answer.status_code in (302, 404)
    half.post(path, {"password": "another password of ada", "next": HOME})
    assert not inside(half)
    assert "_auth_user_id" not in half.session


def test_a_planted_session_is_replaced_at_sign_in(user: User) -> None:
    reset_sign_in_limits()
    victim = Client()
    victim.get("/accounts/login/")
    session = victim.session
    session["planted"] = "yes"
    session.save()
    planted = session.session_key
    victim.cookies[settings.SESSION_COOKIE_NAME] = planted
    enter(victim)
    assert inside(victim)
    attacker = Client()
    attacker.cookies[settings.SESSION_COOKIE_NAME] = planted
    assert not inside(attacker)
