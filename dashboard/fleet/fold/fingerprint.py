"""When two texts tell of the same thing: what differs by chance is taken out before they are
compared."""

from __future__ import annotations

import hashlib
import re

_NORMAL = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "…"),
    (re.compile(r"(?:/private)?(?:/var/tmp|/tmp|/dev/shm|/var/folders)/[^\s'\",:;)\]]*"), "/tmp/…"),
    (re.compile(r"/[^\s'\"]*?/(?:site|dist)-packages/"), ""),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "…"),
    (re.compile(r"\b\d{5,}\b"), "…"),
)


def normalise(text: str) -> str:
    """The text without addresses, long numbers, hashes and temporary paths, its white space
    collapsed."""
    for pattern, replacement in _NORMAL:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def fingerprint(text: str, where: str) -> str:
    """The same for texts and places that differ only by chance."""
    return hashlib.blake2b(
        f"{normalise(text)}\n{normalise(where)}".encode(), digest_size=16
    ).hexdigest()
