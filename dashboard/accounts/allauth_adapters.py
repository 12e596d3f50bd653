"""Adapters of django-allauth: people join by invitation or through the operator's provider. Public
sign-up is closed."""

from __future__ import annotations

import base64
import hashlib
import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.base import AuthError
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from dashboard.accounts.models import User
from dashboard.accounts.oidc_requests import BoundedSession
from dashboard.common.log_throttle import LogThrottle
from dashboard.common.write_lock import acquire_advisory_lock, write_transaction

logger = logging.getLogger(__name__)
_log_throttle = LogThrottle()

UNKNOWN_ADDRESS = "0.0.0.0"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Account adapter for sign-in only."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "The name or the password is not correct.",
        "too_many_login_attempts": "Too many failed sign-ins. Try again in up to 5 minutes.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """A cache key by name alone.

        The key of allauth depends on the Host header, and this server accepts any port in that
        header. Second factors have a counter of their own.
        """
        return f"name:{credentials.get('username', '')}".lower()

    def get_client_ip(self, request: HttpRequest) -> str:
        """The client address, never empty: the session list requires an address, and a request over
        a Unix socket has none."""
        return request.META.get("REMOTE_ADDR") or UNKNOWN_ADDRESS


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Social account adapter: a person whom the provider identifies gets an account.

    The account sees no project until a member invites the person.
    """

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return bool(settings.OIDC_NAME)

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Stores a new person once, even if the person signs in from several tabs at the same time.

        A name that another account took in the meantime is replaced.
        """
        account, person = sociallogin.account, sociallogin.user
        with write_transaction():
            acquire_advisory_lock("user names")
            if SocialAccount.objects.filter(provider=account.provider, uid=account.uid).exists():
                raise PermissionDenied(
                    "the same person signed in twice at the same moment, and is signed in"
                )
            if form is None and User.objects.filter(username__iexact=person.username).exists():
                person.username = ""
            saved: User = super().save_user(request, sociallogin, form)
        return saved

    def get_requests_session(self) -> BoundedSession:
        return BoundedSession()

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,
    ) -> None:
        """Logs each refusal except a cancellation by the person."""
        why = exception or f"the provider returned error={request.GET.get('error', '')[:80]!r}"
        if not (extra_context or {}).get("state"):
            why = "the browser has no pending sign-in for this response"
        if error != AuthError.CANCELLED:
            refusal_log(provider.sub_id, why)


def refusal_log(provider_id: str, why: object) -> None:
    """Logs why a sign-in was refused, with a count: at most one line per minute and reason."""
    text = " ".join(str(why).split())[:300]
    kind = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
    if times := _log_throttle.times(text):
        logger.warning(
            "a sign-in at the provider %s was refused: %s%s (%d times since the last such line)",
            provider_id,
            kind,
            text,
            times,
        )


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """MFA adapter that encrypts the secrets of second factors. A copy of the database alone yields
    no second factor."""

    def encrypt(self, text: str) -> str:
        return _build_cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _build_cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken as error:
            raise ValueError(
                "COMPILEWATCH_KEY_PEPPER has changed since this second factor was set up."
            ) from error


def _build_cipher() -> Fernet:
    return Fernet(
        base64.urlsafe_b64encode(
            hashlib.blake2b(settings.KEY_PEPPER.encode(), person=b"cw-mfa", digest_size=32).digest()
        )
    )
