"""Writes the owners' rollback runbooks, for the alert page and notifications."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import RollbackGuide
from dashboard.alerts.services.transitions import lock_project
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import WatchedModel

MAX_TEXT_LENGTH, MAX_URL_LENGTH = 2000, 200
PLACEHOLDERS = ("{version}", "{baseline}")


class RunbookError(FieldError):
    """An invalid runbook."""


def runbook_set(
    *, model: WatchedModel, text: str, url: str, user: User, address: str | None = None
) -> bool:
    """Sets the runbook of a model; empty text and URL remove it. Returns whether anything changed;
    raises RunbookError."""
    text, url = text.replace("\r\n", "\n").strip(), url.strip()
    _check(text, url)
    with write_transaction():
        lock_project(model.project_id)
        held = RollbackGuide.objects.filter(project=model.project_id, model_name=model.name).first()
        before = {"text": held.text, "url": held.url} if held else {"text": "", "url": ""}
        after = {"text": text, "url": url}
        if after == before:
            return False
        if text or url:
            RollbackGuide.objects.update_or_create(
                project_id=model.project_id, model_name=model.name, defaults=after
            )
        else:
            RollbackGuide.objects.filter(project=model.project_id, model_name=model.name).delete()
        audit_write(
            action="guide.set",
            subject=f"rollback runbook of {model.name}",
            project_id=model.project_id,
            actor=user,
            before=before,
            after=after,
            address=address,
        )
    return True


def _check(text: str, url: str) -> None:
    if len(text) > MAX_TEXT_LENGTH:
        raise RunbookError("text", f"at most {MAX_TEXT_LENGTH:,} characters.")
    if not url:
        return
    if len(url) > MAX_URL_LENGTH:
        raise RunbookError("url", f"at most {MAX_URL_LENGTH} characters.")
    if not url.isprintable() or " " in url:
        raise RunbookError("url", "spaces and control characters are not allowed.")
    if unknown := [place for place in re.findall(r"\{[^{}]*\}", url) if place not in PLACEHOLDERS]:
        raise RunbookError(
            "url", f"unknown placeholder {unknown[0][:40]}, expected {' or '.join(PLACEHOLDERS)}."
        )
    try:
        parts = urlsplit(url)
        whole = (
            parts.scheme in ("https", "http")
            and parts.hostname
            and not parts.username
            and not parts.password
        )
    except ValueError:
        whole = False
    if not whole:
        raise RunbookError(
            "url", "expected an address that starts with https:// and contains no password."
        )
