"""Who a session belongs to, read together with their projects: a page needs both, and asks once."""

from __future__ import annotations

from allauth.account.auth_backends import AuthenticationBackend

from dashboard.accounts.models import User
from dashboard.ui.layout.memberships import find_person_with_projects


class PersonBackend(AuthenticationBackend):  # type: ignore[misc]  # allauth has no types
    """Signs in as allauth does."""

    def get_user(self, user_id: int) -> User | None:
        """None for whoever may not come in any more."""
        user = find_person_with_projects(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
