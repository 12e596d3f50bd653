"""Digests of the bodies that were stored under a sender's newest ranges: they tell a report that is sent again from another one; pure code.

A digest is of the report's JSON text as it came, out of any compression. An agent keeps these bytes until they are acknowledged, and a
digest of what this release decodes would change with the release, so that an honest repeat after an upgrade looked like another body."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from compilewatch.wire.report import SeqRange

DIGEST_BYTES = 8
_ENTRY = Struct(f">QQ{DIGEST_BYTES}s")
ENTRY_BYTES = _ENTRY.size
MAX_ENTRIES = 32
"""As many reports as one request holds: a request whose answer was lost is compared whole. What is older is not compared any more."""
MAX_BYTES = MAX_ENTRIES * ENTRY_BYTES


def digest_of(text: bytes) -> bytes:
    """Eight bytes that another body has by chance once in 2^64."""
    return blake2b(text, digest_size=DIGEST_BYTES).digest()


def entry_of(seq: SeqRange, digest: bytes) -> bytes:
    """A range and the digest of what is stored under it, as one string of fixed length."""
    return _ENTRY.pack(*seq, digest)


def entries_joined(kept: bytes, added: bytes) -> bytes:
    """The newest entries of both, in the order in which they were stored."""
    return (kept + added)[-MAX_BYTES:]


def is_another(kept: bytes, seq: SeqRange, digest: bytes) -> bool:
    """Whether another body is stored under exactly this range; False where no digest of it is kept."""
    found = [stored for first, last, stored in _ENTRY.iter_unpack(kept) if (first, last) == seq]
    return bool(found) and digest not in found
