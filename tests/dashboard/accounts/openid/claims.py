"""What the provider says of a person in an ID token and at its userinfo address."""

from __future__ import annotations

from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator


class Claims(OAuth2Validator):
    """Name and address beside the number of the person."""

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        who = request.user
        return {
            "preferred_username": who.username,
            "name": who.get_full_name(),
            "email": who.email,
            "email_verified": True,
        }
