"""The way to the operator's sign-in provider and back; one that does not answer is a sentence and no failure of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps

from allauth.socialaccount.providers.openid_connect import views
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from requests import RequestException

logger = logging.getLogger(__name__)


def _said(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def through(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except RequestException as error:
            logger.warning("the sign-in provider %s does not answer: %s", provider_id, type(error).__name__)
            return render(request, "socialaccount/authentication_error.html", status=401)

    return through


login = _said(views.login)
callback = _said(views.callback)
