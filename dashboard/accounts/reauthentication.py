"""Reauthentication: sensitive actions require a recent proof of identity."""

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
    """Redirects anonymous requests to sign-in before allauth handles ReauthenticationRequired.

    allauth would store the request in the session until the person has answered. For anonymous
    requests that would be a database row with up to 1 MiB of a stranger's data per request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Runs before the middleware of allauth, which follows in the list."""
        if isinstance(exception, ReauthenticationRequired) and not request.user.is_authenticated:
            return redirect_to_login(
                request.get_full_path() if request.method == "GET" else reverse("home"),
                settings.LOGIN_URL,
            )
        return None


REAUTHENTICATION_VALID_S = 900
"""Seconds for which a password, a code or a sign-in at the provider remains valid."""


def require_reauthentication(request: HttpRequest) -> None:
    """Requires a recent authentication, else raises a redirect.

    The page asks for the password or a code, then performs the action; a GET returns to its page. A
    person who signs in only through a provider has no password here, and signs in there again.
    """
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
