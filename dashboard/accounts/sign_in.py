"""Sign-in of a person who has just proved their identity, recorded for allauth."""

from __future__ import annotations

from allauth.account.internal.flows.login import record_authentication
from django.contrib.auth import login
from django.http import HttpRequest

from dashboard.accounts.models import User


def sign_in_by_password(request: HttpRequest, user: User) -> None:
    """Signs the person in as the sign-in page does, right after they chose their password."""
    login(request, user)
    request.session.set_expiry(0)
    record_authentication(request, user, method="password", username=user.get_username())
