"""Signing somebody in who has just shown who they are, with what allauth notes of it."""

from __future__ import annotations

from allauth.account.internal.flows.login import record_authentication
from django.contrib.auth import login
from django.http import HttpRequest

from dashboard.accounts.models import User


def sign_in_by_password(request: HttpRequest, user: User) -> None:
    """As after the sign-in page: the person chose this password a moment ago."""
    login(request, user)
    request.session.set_expiry(0)
    record_authentication(request, user, method="password", username=user.get_username())
