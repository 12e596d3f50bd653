"""ID token validation: signature, issuer, audience, age and nonce.

A token counts only if the provider signed it recently, for this server. The token must also belong
to the sign-in that began in this browser (OpenID Connect Core 1.0, 3.1.3.7).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Algorithms whose signing key belongs to the provider. HS256 is excluded: its key is the client
secret, or any text that an attacker passes off as the key."""
CLOCK_SKEW_S = 60
"""Maximum difference between the clocks of the two machines."""
MAX_SUBJECT_CHARS = 191
REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat"]


def derive_nonce(verifier: str) -> str:
    """Derives the nonce that ties an ID token to one sign-in.

    The input is the PKCE verifier, which stays in the session of the browser that began.
    """
    digest = hashlib.blake2b(verifier.encode(), person=b"cw-nonce", digest_size=32).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def id_token_read(
    text: object, *, keys: Any, issuer: str, client: str, nonce: str
) -> dict[str, Any]:
    """Returns the claims of a valid token. Raises OAuth2Error with the reason, for the log."""
    if not isinstance(text, str):
        raise OAuth2Error(
            "the provider's response has no ID token: expected id_token, which the scope "
            "openid requests"
        )
    try:
        key = _find_key(jwt.get_unverified_header(text), keys)
        options: Any = {"require": REQUIRED_CLAIMS}
        claims = jwt.decode(
            text,
            key,
            algorithms=ALGORITHMS,
            issuer=issuer,
            audience=client,
            leeway=CLOCK_SKEW_S,
            options=options,
        )
    except jwt.PyJWTError as error:
        raise OAuth2Error(f"the ID token is not valid: {error}") from error
    _check(claims, client, nonce)
    return claims


def _find_key(header: dict[str, Any], keys: Any) -> jwt.PyJWK:
    """Finds the key that the header names. Without a name, exactly one key of the provider must
    match."""
    algorithm, name = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise OAuth2Error(
            f"the ID token is signed with {algorithm!r}, expected RS256 or another of "
            f"{', '.join(ALGORITHMS)}"
        )
    family = {"R": "RSA", "P": "RSA", "E": "EC"}[algorithm[0]] if algorithm != "EdDSA" else "OKP"
    fitting = [
        key
        for key in keys["keys"]
        if key.get("kty") == family
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (name is None or key.get("kid") == name)
    ]
    if len(fitting) != 1:
        raise OAuth2Error(
            f"the ID token names the key {name!r}, which matches {len(fitting)} of the provider's "
            "keys, expected one"
        )
    return jwt.PyJWK(fitting[0], algorithm=algorithm)


def _check(claims: dict[str, Any], client: str, nonce: str) -> None:
    """Checks the claims that PyJWT does not check: azp, nonce and sub."""
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (several or "azp" in claims) and claims.get("azp") != client:
        raise OAuth2Error(
            f"the ID token was issued to the client {claims.get('azp')!r} (azp), expected "
            f"{client!r}"
        )
    found = claims.get("nonce")
    if not isinstance(found, str) or not hmac.compare_digest(found.encode(), nonce.encode()):
        raise OAuth2Error(
            "the ID token has another nonce: it belongs to a sign-in that did not begin in this "
            "browser"
        )
    subject = claims["sub"]
    if not (subject.isascii() and subject.isprintable() and 1 <= len(subject) <= MAX_SUBJECT_CHARS):
        raise OAuth2Error(
            f"the ID token has the subject {subject[:40]!r}, expected 1 to "
            f"{MAX_SUBJECT_CHARS} printable ASCII characters"
        )
