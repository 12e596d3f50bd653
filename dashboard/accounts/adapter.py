"""How django-allauth behaves here: people are invited or come from the operator's own provider, and nobody signs up."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest

UNKNOWN_ADDRESS = "0.0.0.0"


class NoSignup(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Sign-in only."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "The name or the password is not correct.",
        "too_many_login_attempts": "Too many wrong passwords. The next try is possible within 5 minutes.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """A name alone: allauth counts it apart for each Host header, and any port in one is ours. Second steps are counted beside it."""
        return f"name:{credentials.get('username', '')}".lower()

    def get_client_ip(self, request: HttpRequest) -> str:
        """Never nothing: a request over a socket file has no address, and the list of sessions needs one."""
        return request.META.get("REMOTE_ADDR") or UNKNOWN_ADDRESS


class FromTheProvider(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whoever the provider vouches for gets an account with which nothing is seen until somebody invites them into a project."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return bool(settings.OIDC_NAME)


class SealedSecrets(DefaultMFAAdapter):  # type: ignore[misc]
    """What codes are made from is stored sealed: a copy of the database alone gives nobody a second factor."""

    def encrypt(self, text: str) -> str:
        return _seal().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _seal().decrypt(encrypted_text.encode()).decode()
        except InvalidToken as error:
            raise ValueError("COMPILEWATCH_KEY_PEPPER is another than when this second factor was set up.") from error


def _seal() -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.blake2b(settings.KEY_PEPPER.encode(), person=b"cw-mfa", digest_size=32).digest()))
