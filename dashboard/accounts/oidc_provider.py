"""Provider adapter: OpenID Connect sign-in, stricter than allauth.

The adapter verifies the ID token and every other answer of the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest

from dashboard.accounts.id_token import derive_nonce, id_token_read
from dashboard.common.unicode_safety import visible_name

ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
TEXT_CLAIMS = ("preferred_username", "name", "given_name", "family_name", "email")
MAX_TEXT_CHARS = 254


class Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """OAuth2 adapter that closes three gaps of allauth.

    allauth does not verify the signature of an ID token that it fetched, does not use a nonce, and
    accepts the userinfo of any person.
    """

    _config: dict[str, Any] | None = None

    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's discovery document.

        Raises OAuth2Error if the issuer differs from the setting, or an endpoint uses plain http.
        """
        if self._config is None:
            with _refuse_malformed("the discovery document"):
                self._config = _check_config(
                    super().openid_config, self.get_provider().app.settings["server_url"]
                )
        return self._config

    def get_access_token_data(
        self, request: HttpRequest, app: Any, client: Any, pkce_code_verifier: str | None = None
    ) -> dict[str, Any]:
        with _refuse_malformed("the token response"):
            self._nonce = derive_nonce(pkce_code_verifier or "")
            data: dict[str, Any] = super().get_access_token_data(
                request, app, client, pkce_code_verifier=pkce_code_verifier
            )
            return {name: data.get(name) for name in ("access_token", "id_token")}

    def complete_login(
        self, request: HttpRequest, app: Any, token: SocialToken, **kwargs: Any
    ) -> Any:
        """Identifies the person by the ID token. Userinfo of the same subject adds names."""
        with _refuse_malformed("the ID token or userinfo"):
            claims = id_token_read(
                kwargs["response"]["id_token"],
                keys=self._keys(),
                issuer=self.openid_config["issuer"],
                client=app.client_id,
                nonce=self._nonce,
            )
            userinfo = self._fetch_user_info(token.token)
            if userinfo["sub"] != claims["sub"]:
                raise OAuth2Error("the userinfo belongs to another person (sub) than the ID token")
            data = {
                "userinfo": _select_claims(claims | userinfo),
                "id_token": {"iss": claims["iss"], "sub": claims["sub"]},
            }
            return self.get_provider().sociallogin_from_response(request, data)

    def _keys(self) -> Any:
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            return answer.json()


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """Provider class that the settings name; allauth instantiates it."""

    oauth2_adapter_class = Adapter
    supports_token_authentication = False

    def get_pkce_params(self) -> dict[str, str]:
        """PKCE parameters and the nonce. allauth lets no query parameter override them."""
        params: dict[str, str] = super().get_pkce_params()
        return params | {"nonce": derive_nonce(params["code_verifier"])}

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, Any]:
        """Ignores the query: through a link with auth_params, a stranger could choose the
        parameters of the request to the provider."""
        params: dict[str, Any] = self.get_auth_params()
        return params

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        """Ignores the query, for the same reason."""
        scope: list[str] = self.get_scope()
        return scope


def _check_config(config: dict[str, Any], server: str) -> dict[str, Any]:
    issuer = config["issuer"]
    if issuer.rstrip("/") != server.rstrip("/"):
        raise OAuth2Error(
            f"the provider's issuer is {issuer[:200]!r}, expected {server!r}: set "
            "COMPILEWATCH_OIDC_URL to the issuer's URL"
        )
    for name in ENDPOINTS:
        if urlsplit(config[name]).scheme not in ("https", urlsplit(server).scheme):
            raise OAuth2Error(
                f"the provider's {name} is {config[name][:200]!r}, expected an https URL"
            )
    return config


def _select_claims(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Selects the claims that an account needs, as single-line texts that every database can
    store."""
    person: dict[str, Any] = {
        "sub": claims["sub"],
        "email_verified": claims.get("email_verified") in (True, "true"),
    }
    for name in TEXT_CLAIMS:
        if isinstance(text := claims.get(name), str):
            whole = " ".join(text.encode("utf-8", "replace").decode().split())
            person[name] = visible_name(whole)[:MAX_TEXT_CHARS]
    return person


@contextmanager
def _refuse_malformed(what: str) -> Iterator[None]:
    """Turns any error from a malformed answer of the provider into OAuth2Error, a refusal."""
    try:
        yield
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise OAuth2Error(
            f"{what} does not follow OpenID Connect ({type(error).__name__}: {str(error)[:100]!r})"
        ) from error
