"""The way from the dashboard's own page to the provider and back."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import LazySettings
from django.test import Client

from tests.dashboard.accounts.openid.provider import CLIENT, SECRET, answered

NAME, START = "Example login", "/accounts/oidc/sso/login/"
BACK = f"http://testserver{START}callback/"


def configure(settings: LazySettings, address: str) -> None:
    """As the environment would."""
    app = {"provider_id": "sso", "name": NAME, "client_id": CLIENT, "secret": SECRET, "settings": {"server_url": address}}
    settings.OIDC_NAME = NAME
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {**settings.SOCIALACCOUNT_PROVIDERS["openid_connect"], "APPS": [app]}}


def callback(client: Client, *, start: str = START, allow: bool = True) -> str:
    """The address with which the provider sends the browser back, after somebody has said there who they are."""
    away = client.post(start)
    assert away.status_code == 302, away.content
    asked = away.headers["Location"]
    assert "code_challenge=" in asked and "state=" in asked
    parts = urlsplit(answered(asked, allow=allow))
    return f"{parts.path}?{parts.query}"
