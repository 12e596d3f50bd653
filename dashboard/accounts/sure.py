"""Sensitive actions ask again who it is, unless that was shown within the last minutes."""

from __future__ import annotations

import time

from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.urls import reverse

SURE_FOR = 900
"""Seconds for which a password, a code or a provider's word is enough."""


def sure_require(request: HttpRequest) -> None:
    """Leads to the page that asks for the password or a code, which then does what was asked; for GET it comes back here.

    Who signs in at a provider alone has nothing to type here: they sign in there once more."""
    records = get_authentication_records(request, request.user)
    if records and time.time() - records[-1]["at"] < SURE_FOR:
        return
    if get_reauthentication_flows(request.user):
        raise ReauthenticationRequired
    back = request.get_full_path() if request.method == "GET" else request.headers.get("Referer", reverse("home"))
    logout(request)
    raise ImmediateHttpResponse(redirect_to_login(back, settings.LOGIN_URL))
