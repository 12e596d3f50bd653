"""Signal receivers that write the audit log: sign-ins, passwords, second factors and providers."""

from __future__ import annotations

from typing import Any

from allauth.account.signals import password_changed, user_logged_in
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.socialaccount.signals import social_account_added, social_account_removed
from django.dispatch import receiver
from django.http import HttpRequest

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write


@receiver(user_logged_in)
def _audit_sign_in(request: HttpRequest, user: User, sociallogin: Any = None, **_: Any) -> None:
    """Audits a sign-in. A sign-in through the provider ends when the browser closes or is idle, so
    that a person removed there loses access within a day."""
    if sociallogin is not None:
        request.session.set_expiry(0)
    _audit(
        request,
        user,
        "user.sign_in",
        after={"by": "provider" if sociallogin is not None else "password"},
    )


@receiver(password_changed)
def _audit_password_change(request: HttpRequest, user: User, **_: Any) -> None:
    _audit(request, user, "user.password")


@receiver(authenticator_added)
def _audit_authenticator_addition(
    request: HttpRequest, user: User, authenticator: Any, **_: Any
) -> None:
    _audit(request, user, "user.second_step", after={"added": str(authenticator.type)})


@receiver(authenticator_reset)
def _audit_authenticator_reset(
    request: HttpRequest, user: User, authenticator: Any, **_: Any
) -> None:
    _audit(request, user, "user.second_step", after={"renewed": str(authenticator.type)})


@receiver(authenticator_removed)
def _audit_authenticator_removal(
    request: HttpRequest, user: User, authenticator: Any, **_: Any
) -> None:
    _audit(request, user, "user.second_step", after={"removed": str(authenticator.type)})


@receiver(social_account_added)
def _audit_provider_connection(request: HttpRequest, sociallogin: Any, **_: Any) -> None:
    _audit(
        request,
        sociallogin.user,
        "user.provider",
        after={"connected": sociallogin.account.provider},
    )


@receiver(social_account_removed)
def _audit_provider_disconnection(request: HttpRequest, socialaccount: Any, **_: Any) -> None:
    _audit(
        request, socialaccount.user, "user.provider", after={"disconnected": socialaccount.provider}
    )


def _audit(
    request: HttpRequest, user: User, action: str, after: dict[str, str] | None = None
) -> None:
    audit_write(
        action=action,
        subject=user.get_username(),
        actor=user,
        after=after,
        address=request.META.get("REMOTE_ADDR"),
    )
