"""SHA-256 without OpenSSL, as Python's own `random` takes SHA-512: `hashlib` would load 3.5 MiB for a few hashes of names."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = ("_sha2", "_sha256", "hashlib")
"""From Python 3.12 on, before, and where Python was built without hashes of its own."""


def _found() -> Any:
    for name in _HOMES:
        try:
            return importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
    raise ImportError("this Python has no SHA-256")


_sha256 = _found()


def sha256_hex(data: bytes) -> str:
    """The hash, in 64 hexadecimal digits."""
    digits: str = _sha256(data).hexdigest()
    return digits
