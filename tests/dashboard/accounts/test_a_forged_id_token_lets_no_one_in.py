"""Attacks with ID tokens: a proxy changes the answers of a real provider, and the dashboard accepts
only the genuine token."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from jwcrypto.jwk import JWK

from dashboard.accounts.models import User
from tests.dashboard.accounts.openid.front import PERSON, Claims, Front, signed
from tests.dashboard.accounts.openid.provider import CLIENT, KEY, SECRET
from tests.dashboard.accounts.openid.way_in import callback, refused

HOUR = 3600
OTHER = JWK.generate(kty="RSA", size=2048).export_to_pem(private_key=True, password=None)


def hmac_signed(claims: Claims, key: bytes) -> str:
    """Signed by hand, because libraries refuse a public key here."""
    parts = [{"alg": "HS256", "typ": "JWT", "kid": KEY.thumbprint()}, claims]
    text = b".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts
    )
    return (
        text + b"." + base64.urlsafe_b64encode(hmac.digest(key, text, sha256)).rstrip(b"=")
    ).decode()


def unsigned(claims: Claims) -> str:
    parts = [{"alg": "none", "typ": "JWT"}, claims]
    return (
        ".".join(
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in parts
        )
        + "."
    )


def with_claims(**wrong: object) -> Callable[[Claims], str]:
    """Genuinely signed with these claims; None removes a claim."""
    return lambda claims: signed(
        {name: value for name, value in (claims | wrong).items() if value is not None}
    )


def flipped(claims: Claims) -> str:
    """Other claims with the signature of the genuine token."""
    head, _, signature = signed(claims).split(".")
    body = signed(claims | {"sub": "1000"}).split(".")[1]
    return f"{head}.{body}.{signature}"


FORGERIES: dict[str, tuple[Callable[[Claims], str], str]] = {
    "another nonce": (with_claims(nonce="x" * 43), "another nonce"),
    "no nonce": (with_claims(nonce=None), "another nonce"),
    "a nonce that is not a string": (with_claims(nonce=[1]), "another nonce"),
    "another audience": (with_claims(aud="another-client"), "Audience doesn't match"),
    "no audience": (with_claims(aud=None), '"aud" claim'),
    "our audience among others": (
        with_claims(aud=[CLIENT, "another-client"]),
        "issued to the client None",
    ),
    "another authorized party": (
        with_claims(azp="another-client"),
        "issued to the client 'another-client'",
    ),
    "an authorized party among audiences": (
        with_claims(aud=[CLIENT, "another-client"], azp="another-client"),
        "'another-client' (azp)",
    ),
    "another issuer": (with_claims(iss="https://elsewhere.example"), "Invalid issuer"),
    "no issuer": (with_claims(iss=None), '"iss" claim'),
    "expired": (with_claims(exp=int(time.time()) - HOUR), "expired"),
    "no end": (with_claims(exp=None), '"exp" claim'),
    "an end that is no number": (with_claims(exp="never"), "must be an integer"),
    "from the future": (with_claims(iat=int(time.time()) + HOUR), "not yet valid"),
    "not before tomorrow": (with_claims(nbf=int(time.time()) + 24 * HOUR), "not yet valid"),
    "no signature": (unsigned, "signed with 'none'"),
    "the client's secret as key": (
        lambda claims: hmac_signed(claims, SECRET.encode()),
        "signed with 'HS256'",
    ),
    "the public key as secret": (
        lambda claims: hmac_signed(claims, KEY.export_to_pem()),
        "signed with 'HS256'",
    ),
    "an unknown key": (
        lambda claims: signed(claims, kid="unknown"),
        "the key 'unknown', which matches 0",
    ),
    "another key under the known name": (
        lambda claims: signed(claims, key=OTHER),
        "Signature verification failed",
    ),
    "another key under another name": (
        lambda claims: signed(claims, key=OTHER, kid="mine"),
        "the key 'mine', which matches 0",
    ),
    "another kind of key": (
        lambda claims: signed(
            claims, key=ec.generate_private_key(ec.SECP256R1()), algorithm="ES256"
        ),
        "which matches 0",
    ),
    "the signature of another token": (flipped, "Signature verification failed"),
    "no person": (with_claims(sub=None), '"sub" claim'),
    "a person without letters": (with_claims(sub=""), "the subject ''"),
    "a person of a thousand letters": (with_claims(sub="x" * 1000), "the subject 'xxx"),
    "a person that is a list": (with_claims(sub=["1"]), "ubject must be a string"),
    "no token at all": (lambda _: "", "not valid"),
    "three dots": (lambda _: "...", "not valid"),
    "a token nested without end": (
        lambda _: base64.urlsafe_b64encode(b"[" * 90_000).decode() + ".e30.e30",
        "not",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_token_is_refused_and_creates_nothing(
    client: Client, front: Front, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    forge, why = FORGERIES[name]
    front.forge(forge)
    refused(client, callback(client), caplog, why)


def test_the_genuine_token_is_accepted_through_the_same_proxy(client: Client, front: Front) -> None:
    front.forge(lambda claims: signed(claims))
    assert client.get(callback(client)).status_code == 302
    assert client.session["_auth_user_id"] == str(User.objects.get(username="mara").pk)


def test_a_token_for_several_audiences_is_accepted_by_its_authorized_party(
    client: Client, front: Front
) -> None:
    front.forge(with_claims(aud=[CLIENT, "project-7"], azp=CLIENT))
    client.get(callback(client))
    assert User.objects.get(username="mara")


def test_clocks_may_differ_by_half_a_minute(client: Client, front: Front) -> None:
    front.forge(with_claims(iat=int(time.time()) + 30))
    client.get(callback(client))
    assert User.objects.get(username="mara")


def test_a_genuine_token_of_an_earlier_sign_in_is_refused(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    front.forge(lambda claims: seen.append(signed(claims)) or seen[0])
    client.get(callback(client))
    client.post("/accounts/logout/")
    User.objects.all().delete()
    thief = Client()
    refused(thief, callback(thief), caplog, "another nonce")


def test_userinfo_of_another_person_is_refused(
    client: Client, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    front.changes[PERSON] = lambda told: told | {"sub": "1000"}
    refused(client, callback(client), caplog, "userinfo belongs to another person")
