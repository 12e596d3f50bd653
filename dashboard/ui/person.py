"""Session user, read together with the user's projects in one query, because each page needs
both."""

from __future__ import annotations

from allauth.account.auth_backends import AuthenticationBackend

from dashboard.accounts.models import User
from dashboard.ui.layout.memberships import find_person_with_projects


class PersonBackend(AuthenticationBackend):  # type: ignore[misc]  # allauth has no types
    """Signs in with allauth's backend."""

    def get_user(self, user_id: int) -> User | None:
        """None if the user can no longer sign in."""
        user = find_person_with_projects(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
