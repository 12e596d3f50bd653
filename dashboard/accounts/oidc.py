"""Views of the sign-in through the operator's provider.

A provider that does not answer produces an error page, not a server error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from allauth.decorators import rate_limit
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from requests import RequestException

from dashboard.accounts.allauth_adapters import refusal_log
from dashboard.accounts.oidc_provider import Adapter

PROVIDER_SIGN_IN_TIMEOUT_S = 3600
"""Maximum time a person may spend at the provider."""


def _handle_provider_errors(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def through(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except SocialApp.DoesNotExist as error:
            raise Http404("Sign-in provider not found.") from error
        except (RequestException, OAuth2Error) as error:
            refusal_log(provider_id, error)
            return render(request, "socialaccount/authentication_error.html", status=401)

    return through


@rate_limit(action="login")  # type: ignore[untyped-decorator]  # allauth has no types
def _login_view(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirects to the provider. The anonymous session is kept for an hour, and the rate limit of
    sign-ins bounds the number of such sessions."""
    answer: HttpResponse = OAuth2LoginView.adapter_view(Adapter(request, provider_id))(request)
    if not request.user.is_authenticated and request.session.modified:
        request.session.set_expiry(PROVIDER_SIGN_IN_TIMEOUT_S)
    return answer


def _callback_view(request: HttpRequest, provider_id: str) -> HttpResponse:
    answer: HttpResponse = OAuth2CallbackView.adapter_view(Adapter(request, provider_id))(request)
    return answer


login = _handle_provider_errors(_login_view)
callback = _handle_provider_errors(_callback_view)
