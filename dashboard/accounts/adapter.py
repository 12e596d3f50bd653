"""How django-allauth behaves here: people are invited, nobody signs up."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class NoSignup(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Sign-in only."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
