"""Sign-in flow from the dashboard's own page to the provider and back."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client

from dashboard.accounts.models import User
from dashboard.projects.models import Member
from tests.dashboard.accounts.openid.provider import CLIENT, SECRET, answered

NAME, START = "Example login", "/accounts/oidc/sso/login/"
BACK = f"http://testserver{START}callback/"


def configure(settings: LazySettings, address: str) -> None:
    """Configures the provider as the environment would."""
    app = {
        "provider_id": "sso",
        "name": NAME,
        "client_id": CLIENT,
        "secret": SECRET,
        "settings": {"server_url": address},
    }
    settings.OIDC_NAME = NAME
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {**settings.SOCIALACCOUNT_PROVIDERS["openid_connect"], "APPS": [app]}
    }


def callback(client: Client, *, start: str = START, allow: bool = True) -> str:
    """The callback URL to which the provider redirects the browser after the person has signed in
    there."""
    away = client.post(start)
    assert away.status_code == 302, away.content
    asked = away.headers["Location"]
    assert "code_challenge=" in asked and "state=" in asked
    parts = urlsplit(answered(asked, allow=allow))
    return f"{parts.path}?{parts.query}"


def refused(client: Client, path: str, caplog: pytest.LogCaptureFixture, why: str) -> None:
    """The answer is a plain page, the log has one line with the reason, and no session or account
    exists."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "dashboard"):
        answer = client.get(path) if path != START else client.post(path)
    page = answer.content.decode()
    assert answer.status_code == 401 and "Sign-in failed" in page and "Traceback" not in page
    [line] = [
        one.getMessage()
        for one in caplog.records
        if one.name == "dashboard.accounts.allauth_adapters"
    ]
    assert (
        line.startswith("a sign-in at the provider sso was refused: ")
        and why in line
        and "\n" not in line
    )
    assert not any("_auth_user_id" in session.get_decoded() for session in Session.objects.all())
    assert (
        not User.objects.exists()
        and not SocialAccount.objects.exists()
        and not Member.objects.exists()
    )
