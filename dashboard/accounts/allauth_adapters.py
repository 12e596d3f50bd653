"""How django-allauth behaves here: people are invited or come from the operator's own provider, and
nobody signs up."""

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
    """Sign-in only."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "The name or the password is not correct.",
        "too_many_login_attempts": "Too many wrong passwords. The next try "
        "is possible within 5 minutes.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """A name alone: allauth counts it apart for each Host header, and any port in one is ours.
        Second steps are counted beside it."""
        return f"name:{credentials.get('username', '')}".lower()

    def get_client_ip(self, request: HttpRequest) -> str:
        """Never nothing: a request over a socket file has no address, and the list of sessions
        needs one."""
        return request.META.get("REMOTE_ADDR") or UNKNOWN_ADDRESS


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whoever the provider vouches for gets an account with which nothing is seen until somebody
    invites them into a project."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return bool(settings.OIDC_NAME)

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """A new person, once, however many tabs they come in; a name that was taken a moment ago is
        another one's."""
        account, person = sociallogin.account, sociallogin.user
        with write_transaction():
            acquire_advisory_lock("user names")
            if SocialAccount.objects.filter(provider=account.provider, uid=account.uid).exists():
                raise PermissionDenied("the same person came twice in one moment, and is in")
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
        """A line in the log for each refusal but one: a person who says no at the provider has said
        so."""
        why = exception or f"it answered error={request.GET.get('error', '')[:80]!r}"
        if not (extra_context or {}).get("state"):
            why = "no sign-in that began in this browser waits for the answer"
        if error != AuthError.CANCELLED:
            refusal_log(provider.sub_id, why)


def refusal_log(provider_id: str, why: object) -> None:
    """Why somebody was not let in, at most once a minute for each reason, with how often."""
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
    """What codes are made from is stored sealed: a copy of the database alone gives nobody a second
    factor."""

    def encrypt(self, text: str) -> str:
        return _build_cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _build_cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken as error:
            raise ValueError(
                "COMPILEWATCH_KEY_PEPPER is another than when this second factor was set up."
            ) from error


def _build_cipher() -> Fernet:
    return Fernet(
        base64.urlsafe_b64encode(
            hashlib.blake2b(settings.KEY_PEPPER.encode(), person=b"cw-mfa", digest_size=32).digest()
        )
    )
