"""Commands as the answer of a dashboard carries them: with the signature of its key, with the MAC
of the previous release, or with both."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from compilewatch.config import Config
from compilewatch.wire.command import ED25519_CONTEXT, Command, command_body, command_sign
from compilewatch.wire.messages import Identity
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SYMMETRIC = f"cw_cmd_8charsid_{'k' * 49}"
SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
ME = Identity(
    id="i" * 26, started=0.0, model="ranker", version="1", environment="production", job="train-7"
)


def public_of(secret: Ed25519PrivateKey) -> str:
    return secret.public_key().public_bytes_raw().hex()


PUBLIC = public_of(SECRET)


def config_of(**settings: str) -> Config:
    """The settings of a job that allows `eager`."""
    return Config(
        model="ranker", endpoint="http://127.0.0.1:9", allow_remote=("eager",), **settings
    )


def command(counter: int = 1, **changes: Any) -> Command:
    """A valid command for every instance of the model, except for the changes."""
    now = time.time()
    good = {
        "id": f"a1.{counter}",
        "project": "8charsid",
        "verb": "eager",
        "counter": counter,
        "model": "ranker",
        "version": "1",
    }
    rest = {"environment": "production", "not_before": now - 1, "expires": now + 60, "share": 1.0}
    return Command(**{**good, **rest, **changes})  # type: ignore[arg-type]


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def signed(
    body: Command | bytes,
    secret: Ed25519PrivateKey = SECRET,
    context: bytes = ED25519_CONTEXT,
    label: str = "",
) -> dict[str, Any]:
    """Signed by a key alone; the signature claims to be of `label`."""
    body = command_body(body) if isinstance(body, Command) else body
    return {
        "body": text_of(body),
        "ed25519": {label or public_of(secret): text_of(secret.sign(context + body))},
    }


def with_mac(given: Command, key: str = SYMMETRIC) -> dict[str, Any]:
    """With the MAC, as in the previous release."""
    return {"signed": text_of(command_sign(given, key))}


def both(
    given: Command, secret: Ed25519PrivateKey = SECRET, key: str = SYMMETRIC
) -> dict[str, Any]:
    return {**signed(given, secret), **with_mac(given, key)}


def changed(given: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """With other fields in its JSON, and the original signatures."""
    body = json.loads(base64.b64decode(given["body"]))
    return {
        **given,
        "body": text_of(
            json.dumps({**body, **fields}, separators=(",", ":"), sort_keys=True).encode()
        ),
    }
