"""Claims of the provider about a person, in the ID token and at the userinfo endpoint."""

from __future__ import annotations

from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator


class Claims(OAuth2Validator):
    """Adds name and mail address to the subject."""

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        who = request.user
        return {
            "preferred_username": who.username,
            "name": who.get_full_name(),
            "email": who.email,
            "email_verified": True,
        }
