"""The way to the operator's sign-in provider and back; one that does not answer is a sentence and no failure of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps

from allauth.decorators import rate_limit
from allauth.socialaccount.providers.openid_connect import views
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from requests import RequestException

logger = logging.getLogger(__name__)

WAY_AND_BACK = 3600
"""Seconds that a person may take at the provider."""


def _said(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def through(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except RequestException as error:
            logger.warning("the sign-in provider %s does not answer: %s", provider_id, type(error).__name__)
            return render(request, "socialaccount/authentication_error.html", status=401)

    return through


@rate_limit(action="login")  # type: ignore[untyped-decorator]  # allauth has no types
def _begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """What has to be remembered of a stranger until they come back is kept for an hour, and bounded as tries to sign in are."""
    answer: HttpResponse = views.login(request, provider_id)
    if not request.user.is_authenticated and request.session.modified:
        request.session.set_expiry(WAY_AND_BACK)
    return answer


login = _said(_begin)
callback = _said(views.callback)
