"""Key authentication: checks keys against the database, and caches each result for half a second. A
revoked key stops working within a second.

Algorithm: a result is fresh for `CACHE_FRESH_S`. After that, one thread of the process refreshes it
(single flight). Other threads use the cached result until it is `CACHE_USABLE_DURING_REFRESH_S`
old. They then wait up to `REFRESH_WAIT_S` for the refresh, and finally query the database.

Invariants:
- A result older than `CACHE_USABLE_DURING_REFRESH_S` never grants access.
- Cache entries are found by salted hashes, so the cache holds no key text.
- Unknown keys have a cache of their own, so a flood of them never evicts valid keys.
- The expiry of a key is checked at each use, not only at a refresh.
"""

import hashlib
import hmac
import logging
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from django.conf import settings
from django.db import DatabaseError

from dashboard.common import clock
from dashboard.projects.key_format import key_digest, key_text_parse
from dashboard.projects.models import Key
from dashboard.projects.services import key_record_use

logger = logging.getLogger(__name__)

CACHE_FRESH_S = 0.5
CACHE_USABLE_DURING_REFRESH_S = 0.9
"""Seconds for which a cached result serves other threads while one thread refreshes it."""

REFRESH_WAIT_S = 1.0
"""Seconds that a thread without a cached result waits for a refresh. Without the wait, all threads
together would need more connections than the pool has."""

MAX_CACHED_KEYS = 4096


@dataclass(frozen=True, slots=True)
class VerifiedKey:
    """A valid key and its project."""

    id: int
    kind: str
    project_id: int
    project_settings: dict[str, object]
    expires_at: datetime | None

    def alive(self) -> bool:
        """True if the key has not expired since the lookup."""
        return self.expires_at is None or self.expires_at > clock.now()


_valid_cache: dict[bytes, tuple[float, VerifiedKey | None]] = {}
_invalid_cache: dict[bytes, tuple[float, VerifiedKey | None]] = {}
"""Keys unknown to the database, apart from valid keys: a flood of unknown keys evicts only unknown
keys."""
_salt = secrets.token_bytes(32)
_refresh_lock = Lock()


def key_check(text: str) -> VerifiedKey | None:
    """The key with this text, or None if the key is unknown, mistyped, revoked or expired."""
    mark = _fingerprint(text)
    known, age = _find_cached(mark)
    if age > CACHE_FRESH_S:
        known = _refresh_single_flight(
            text, mark, patience=0.0 if age <= CACHE_USABLE_DURING_REFRESH_S else REFRESH_WAIT_S
        )
    return known if known is not None and known.alive() else None


def key_recall(text: str) -> VerifiedKey | None:
    """The key with this text, if it was valid at the last check. Prioritizes requests and grants no
    access."""
    return _find_cached(_fingerprint(text))[0]


def _fingerprint(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=_salt, digest_size=32).digest()


def _find_cached(mark: bytes) -> tuple[VerifiedKey | None, float]:
    """The last result and its age in seconds."""
    asked, known = _valid_cache.get(mark) or _invalid_cache.get(mark, (float("-inf"), None))
    return known, time.monotonic() - asked


def _refresh_single_flight(text: str, mark: bytes, *, patience: float) -> VerifiedKey | None:
    """The current result of the database. One thread queries; the others use the cached result or
    wait for the query."""
    mine = (
        _refresh_lock.acquire(timeout=patience)
        if patience
        else _refresh_lock.acquire(blocking=False)
    )
    try:
        known, age = _find_cached(mark)
        if age <= (CACHE_FRESH_S if mine else CACHE_USABLE_DURING_REFRESH_S):
            return known
        return _refresh(text, mark)
    finally:
        if mine:
            _refresh_lock.release()


def _refresh(text: str, mark: bytes) -> VerifiedKey | None:
    parts = key_text_parse(text)
    if parts is None:
        return None
    asked = time.monotonic()
    known = _query_key(parts.lookup, parts.kind, key_digest(text, settings.KEY_PEPPER))
    kept, other = (
        (_invalid_cache, _valid_cache) if known is None else (_valid_cache, _invalid_cache)
    )
    other.pop(mark, None)
    if len(kept) >= MAX_CACHED_KEYS and mark not in kept:
        kept.clear()
    kept[mark] = (asked, known)
    return known


def clear_key_cache() -> None:
    """Clears the cache, so that every key is looked up again."""
    _valid_cache.clear()
    _invalid_cache.clear()


def _query_key(lookup: str, kind: str, digest: bytes) -> VerifiedKey | None:
    key = (
        Key.objects.select_related("project")
        .filter(lookup=lookup, kind=kind, revoked_at=None)
        .first()
    )
    if key is None or not hmac.compare_digest(bytes(key.digest), digest):
        return None
    known = VerifiedKey(key.pk, key.kind, key.project_id, key.project.settings, key.expires_at)
    if known.alive() and (
        key.last_used_at is None or key.last_used_at.timestamp() // 60 < clock.unix() // 60
    ):
        _record_use(known)
    return known


def _record_use(known: VerifiedKey) -> None:
    try:
        key_record_use(key_id=known.id)
    except DatabaseError as error:
        logger.warning("the last use of key %s was not recorded: %s", known.id, error)
