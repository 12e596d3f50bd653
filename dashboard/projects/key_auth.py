"""Checks presented keys against the database, at most twice a second each: a revoked key stops working within a second."""

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
from dashboard.projects.key_format import key_digest, key_text_read
from dashboard.projects.models import Key
from dashboard.projects.services import key_used

logger = logging.getLogger(__name__)

TRUSTED_FOR = 0.5
TRUSTED_WHILE_ASKING = 0.9
"""Seconds an answer serves other threads while one of them asks again."""

WAITS_FOR_ANOTHER = 1.0
"""Seconds a thread that has no answer waits for the one that asks: all at once would take more connections than there are."""

MAX_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that works, and whom it speaks for."""

    id: int
    kind: str
    project_id: int
    project_settings: dict[str, object]
    expires_at: datetime | None

    def alive(self) -> bool:
        """Whether it has not expired since it was looked up."""
        return self.expires_at is None or self.expires_at > clock.now()


_remembered: dict[bytes, tuple[float, KnownKey | None]] = {}
_refused: dict[bytes, tuple[float, KnownKey | None]] = {}
"""Keys that the database does not know, apart from those that work: a flood of them makes room among its own."""
_salt = secrets.token_bytes(32)
_asking = Lock()


def key_check(text: str) -> KnownKey | None:
    """The key behind the text, or None if it is unknown, mistyped, revoked or expired."""
    mark = _mark(text)
    known, age = _recall(mark)
    if age > TRUSTED_FOR:
        known = _asked_by_one(text, mark, patience=0.0 if age <= TRUSTED_WHILE_ASKING else WAITS_FOR_ANOTHER)
    return known if known is not None and known.alive() else None


def key_recall(text: str) -> KnownKey | None:
    """The key behind the text, if it worked when it was last checked. It orders requests and grants no access."""
    return _recall(_mark(text))[0]


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=_salt, digest_size=32).digest()


def _recall(mark: bytes) -> tuple[KnownKey | None, float]:
    """What was found last, and how many seconds ago."""
    asked, known = _remembered.get(mark) or _refused.get(mark, (float("-inf"), None))
    return known, time.monotonic() - asked


def _asked_by_one(text: str, mark: bytes, *, patience: float) -> KnownKey | None:
    """What the database says. Of many threads one asks; the others take what they have, or wait for what it hears."""
    mine = _asking.acquire(timeout=patience) if patience else _asking.acquire(blocking=False)
    try:
        known, age = _recall(mark)
        if age <= (TRUSTED_FOR if mine else TRUSTED_WHILE_ASKING):
            return known
        return _ask(text, mark)
    finally:
        if mine:
            _asking.release()


def _ask(text: str, mark: bytes) -> KnownKey | None:
    parts = key_text_read(text)
    if parts is None:
        return None
    asked = time.monotonic()
    known = _find(parts.lookup, parts.kind, key_digest(text, settings.KEY_PEPPER))
    kept, other = (_refused, _remembered) if known is None else (_remembered, _refused)
    other.pop(mark, None)
    if len(kept) >= MAX_REMEMBERED and mark not in kept:
        kept.clear()
    kept[mark] = (asked, known)
    return known


def key_checks_forget() -> None:
    """Asks the database again for every key."""
    _remembered.clear()
    _refused.clear()


def _find(lookup: str, kind: str, digest: bytes) -> KnownKey | None:
    key = Key.objects.select_related("project").filter(lookup=lookup, kind=kind, revoked_at=None).first()
    if key is None or not hmac.compare_digest(bytes(key.digest), digest):
        return None
    known = KnownKey(key.pk, key.kind, key.project_id, key.project.settings, key.expires_at)
    if known.alive() and (key.last_used_at is None or key.last_used_at.timestamp() // 60 < clock.unix() // 60):
        _note_use(known)
    return known


def _note_use(known: KnownKey) -> None:
    try:
        key_used(key_id=known.id)
    except DatabaseError as error:
        logger.warning("the last use of key %s was not noted: %s", known.id, error)
