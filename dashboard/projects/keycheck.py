"""Checks presented keys against the database, at most twice a second each: a revoked key stops working within a second."""

import hmac
import logging
import time
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError

from dashboard.common import clock
from dashboard.projects.keys import key_digest, key_text_read
from dashboard.projects.models import Key
from dashboard.projects.services import key_used

logger = logging.getLogger(__name__)

TRUSTED_FOR = 0.5
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


def key_check(text: str) -> KnownKey | None:
    """The key behind the text, or None if it is unknown, mistyped, revoked or expired."""
    parts = key_text_read(text)
    if parts is None:
        return None
    digest = key_digest(text, settings.KEY_PEPPER)
    asked, known = _remembered.get(digest, (-1.0, None))
    if time.monotonic() - asked > TRUSTED_FOR or asked < 0:
        asked, known = time.monotonic(), _find(parts.lookup, parts.kind, digest)
        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.clear()
        _remembered[digest] = (asked, known)
    return known if known is not None and known.alive() else None


def key_checks_forget() -> None:
    """Asks the database again for every key."""
    _remembered.clear()


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
