"""Key format: generation, checksum and hash of key texts, without database access."""

import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEY_KINDS = ("ing", "api", "dep")
_KEY_PATTERN = re.compile(
    r"(cw_(ing|api|dep)_([0-9A-Za-z]{8})_[0-9A-Za-z]{43})([0-9A-Za-z]{6})", re.ASCII
)
KEY_SEARCH_PATTERN = re.compile(r"cw_(?:ing|api|dep|cmd)_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyText:
    """The text of a key with its kind and lookup part."""

    text: str
    kind: str
    lookup: str


def key_text_generate(kind: str) -> KeyText:
    """Generates a key; its 43 characters of base 62 hold 256 bits."""
    lookup, secret = _random(8), _random(43)
    body = f"cw_{kind}_{lookup}_{secret}"
    return KeyText(body + _checksum(body), kind, lookup)


def key_text_parse(text: str) -> KeyText | None:
    """Parses a key. None if the text is not a key or was mistyped."""
    found = _KEY_PATTERN.fullmatch(text)
    if found is None or found[4] != _checksum(found[1]):
        return None
    return KeyText(text, found[2], found[3])


def key_digest(text: str, pepper: str) -> bytes:
    """The keyed hash of a key, which the database stores."""
    return hmac.digest(pepper.encode(), text.encode(), "sha256")


def key_text_derive(kind: str, pepper: str, nonce: str) -> str:
    """Derives a key that is not stored, not even as a hash. The derivation requires both the pepper
    and the nonce."""

    def part(name: str, length: int) -> str:
        number = int.from_bytes(
            hmac.digest(pepper.encode(), f"{kind} {name} {nonce}".encode(), "sha512"), "big"
        )
        return "".join(ALPHABET[number // 62**place % 62] for place in range(length))

    body = f"cw_{kind}_{part('lookup', 8)}_{part('secret', 43)}"
    return body + _checksum(body)


def seed_derive(kind: str, pepper: str, nonce: str) -> bytes:
    """Derives the 32 bytes of a private key, which are not stored. No key text reveals the
    bytes."""
    return hmac.digest(pepper.encode(), f"{kind} ed25519 {nonce}".encode(), "sha256")


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    number, out = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        out = ALPHABET[digit] + out
    return out
