"""Writes how the owners of a model roll back: what the alert's page and its messages show."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import RollbackGuide
from dashboard.alerts.services.transitions import project_hold
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import WatchedModel

LONGEST, LONGEST_URL = 2000, 200
PLACES = ("{version}", "{baseline}")


class GuideError(ValueError):
    """What was written cannot be a guide; the text begins with the field's name and says why."""


def guide_set(*, model: WatchedModel, text: str, url: str, user: User, address: str | None = None) -> bool:
    """From now on; both empty means there is none. Returns whether that changed anything; raises GuideError."""
    text, url = text.replace("\r\n", "\n").strip(), url.strip()
    _check(text, url)
    with write_transaction():
        project_hold(model.project_id)
        held = RollbackGuide.objects.filter(project=model.project_id, model_name=model.name).first()
        before = {"text": held.text, "url": held.url} if held else {"text": "", "url": ""}
        after = {"text": text, "url": url}
        if after == before:
            return False
        if text or url:
            RollbackGuide.objects.update_or_create(project_id=model.project_id, model_name=model.name, defaults=after)
        else:
            RollbackGuide.objects.filter(project=model.project_id, model_name=model.name).delete()
        audit_write(
            action="guide.set",
            subject=f"roll back guide of {model.name}",
            project_id=model.project_id,
            actor=user,
            before=before,
            after=after,
            address=address,
        )
    return True


def _check(text: str, url: str) -> None:
    if len(text) > LONGEST:
        raise GuideError(f"text: at most {LONGEST:,} characters.")
    if not url:
        return
    if len(url) > LONGEST_URL:
        raise GuideError(f"url: at most {LONGEST_URL} characters.")
    if not url.isprintable() or " " in url:
        raise GuideError("url: an address has no spaces and no control characters.")
    if unknown := [place for place in re.findall(r"\{[^{}]*\}", url) if place not in PLACES]:
        raise GuideError(f"url: {unknown[0][:40]} is filled in by nobody, expected {' or '.join(PLACES)}.")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("https", "http") and parts.hostname and not parts.username and not parts.password
    except ValueError:
        whole = False
    if not whole:
        raise GuideError("url: expected an address that begins with https:// and has no password in it.")
