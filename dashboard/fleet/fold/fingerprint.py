"""Fingerprint: equal for texts that differ only in addresses, hashes and temporary paths."""

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
    """Remove addresses, long numbers, hashes and temporary paths; collapse white space."""
    for pattern, replacement in _NORMAL:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def fingerprint(text: str, where: str) -> str:
    """Return the hash of the normalised text and location."""
    return hashlib.blake2b(
        f"{normalise(text)}\n{normalise(where)}".encode(), digest_size=16
    ).hexdigest()
