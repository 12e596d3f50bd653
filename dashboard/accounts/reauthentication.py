"""Sensitive actions ask again who it is, unless that was shown within the last minutes."""

from __future__ import annotations

import time
from collections.abc import Callable

from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse


class AnonymousReauthenticationMiddleware:
    """A page that asks again who it is keeps what was sent until the answer, in the session. Who is
    not signed in goes to the way in, and nothing is kept: a row with up to a MiB of what a stranger
    sent would be stored at each request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Called before allauth's own, which follows in the list."""
        if isinstance(exception, ReauthenticationRequired) and not request.user.is_authenticated:
            return redirect_to_login(
                request.get_full_path() if request.method == "GET" else reverse("home"),
                settings.LOGIN_URL,
            )
        return None


REAUTHENTICATION_VALID_S = 900
"""Seconds for which a password, a code or a provider's word is enough."""


def require_reauthentication(request: HttpRequest) -> None:
    """Leads to the page that asks for the password or a code, which then does what was asked; for
    GET it comes back here.

    Who signs in at a provider alone has nothing to type here: they sign in there once more."""
    records = get_authentication_records(request, request.user)
    if records and time.time() - records[-1]["at"] < REAUTHENTICATION_VALID_S:
        return
    if get_reauthentication_flows(request.user):
        raise ReauthenticationRequired
    back = (
        request.get_full_path()
        if request.method == "GET"
        else request.headers.get("Referer", reverse("home"))
    )
    logout(request)
    raise ImmediateHttpResponse(redirect_to_login(back, settings.LOGIN_URL))
