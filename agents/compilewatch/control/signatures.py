"""The verification of commands by the key in this job's settings; each signature is verified once, however many answers carry it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config
from compilewatch.wire.command import Command, CommandRefused, command_open, command_open_public
from compilewatch.wire.ed25519 import PublicKey

MAX_KNOWN = 64
"""Signatures whose result is kept. An answer can hold `MAX_COMMANDS`, so one that comes again in the next answer is always known."""
SHARED = (
    "HMAC-SHA256 with the command key, which every job of the project holds and can sign with; set COMPILEWATCH_COMMAND_PUBLIC_KEY: "
    "the next release takes nothing else"
)


class KnownSignatures:
    """What a public key says of each signature and message, by their hash: an id in a forged command cannot borrow another's result."""

    def __init__(self, key: PublicKey) -> None:
        self._key = key
        self._results: dict[bytes, bool] = {}
        self.verified = 0
        """How many were verified, and not known."""

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the signature is that of the key over the message."""
        digest = hashlib.sha256(len(signature).to_bytes(4, "little") + signature + message).digest()
        result = self._results.pop(digest, None)
        if result is None:
            self.verified += 1
            result = self._key.verifies(signature, message)
        # The newest is last: what still comes in answers is not the one that is dropped.
        self._results[digest] = result
        if len(self._results) > MAX_KNOWN:
            del self._results[next(iter(self._results))]
        return result


def opener_of(config: Config) -> Callable[[Any], Command]:
    """What opens a command of an answer. With a public key in the settings nothing but its signature counts."""
    public = config.command_public_key
    if not config.allow_remote:
        return _unasked
    if not public:
        return lambda given: command_open(given, config.command_key)
    known = KnownSignatures(PublicKey(bytes.fromhex(public)))
    return lambda given: command_open_public(given, public, known.verifies)


def signature_capability(config: Config) -> tuple[str, str]:
    """What the capability table says of it."""
    return ("yes", "Ed25519") if config.command_public_key else ("partly", SHARED)


def _unasked(_: Any) -> Command:
    raise CommandRefused("not_allowed")
