"""Signature verification of commands, with a cache: each signature is verified once, even if many
answers repeat it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config
from compilewatch.wire.command import Command, CommandRefused, command_open, command_open_public
from compilewatch.wire.ed25519 import PublicKey

MAX_CACHED_SIGNATURES = 64
"""Number of cached results.

It exceeds `MAX_COMMANDS`, so a signature that the next answer repeats is always cached.
"""
SHARED_KEY_REASON = (
    "HMAC-SHA256 with the command key, which every job of the project holds and can sign "
    "with; set COMPILEWATCH_COMMAND_PUBLIC_KEY: the next release accepts nothing else"
)


class SignatureCache:
    """LRU cache of verification results.

    The key is a hash of signature and message, so a forged command cannot reuse the result of
    another command by copying its id.
    """

    def __init__(self, key: PublicKey) -> None:
        self._key = key
        self._results: dict[bytes, bool] = {}
        self.verified_count = 0
        """Number of verifications that were not cached."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Returns whether the signature of this key over the message is valid."""
        digest = hashlib.sha256(len(signature).to_bytes(4, "little") + signature + message).digest()
        result = self._results.pop(digest, None)
        if result is None:
            self.verified_count += 1
            result = self._key.verify(signature, message)
        # Re-insert the result as the newest entry, so that signatures in use are not evicted.
        self._results[digest] = result
        if len(self._results) > MAX_CACHED_SIGNATURES:
            del self._results[next(iter(self._results))]
        return result


def opener_of(config: Config) -> Callable[[Any], Command]:
    """Returns the function that verifies and decodes a command.

    With a public key in the settings, it accepts only signatures of that key.
    """
    public = config.command_public_key
    if not config.allow_remote:
        return _refuse_unwanted
    if not public:
        return lambda item: command_open(item, config.command_key)
    cache = SignatureCache(PublicKey(bytes.fromhex(public)))
    return lambda item: command_open_public(item, public, cache.verify)


def signature_capability(config: Config) -> tuple[str, str]:
    """Returns the capability of signature verification."""
    return ("yes", "Ed25519") if config.command_public_key else ("partly", SHARED_KEY_REASON)


def _refuse_unwanted(_: Any) -> Command:
    raise CommandRefused("not_allowed")
