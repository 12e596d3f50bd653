"""The key that signs commands to a project's jobs: made from the server's pepper and a nonce in the project's settings."""

from __future__ import annotations

import secrets

from django.conf import settings

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.projects.keys import key_text_derived
from dashboard.projects.models import Project

SETTING = "command_key"


def command_key(project: Project) -> str:
    """The key as it is now; empty while the project has none."""
    known = project.settings.get(SETTING)
    return key_text_derived("cmd", settings.KEY_PEPPER, known["nonce"]) if isinstance(known, dict) else ""


def command_key_make(*, project: Project, actor: User | None = None, actor_name: str = "", address: str | None = None) -> str:
    """A new key, to be shown this once; jobs with the one before follow no command from now on."""
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = command_key(stored)
        stored.settings = {**stored.settings, SETTING: {"nonce": secrets.token_hex(16), "made_at": clock.now().isoformat()}}
        stored.save(update_fields=["settings"])
        text = command_key(stored)
        audit_write(
            action="command_key.make",
            subject=text[:15],
            project_id=project.pk,
            actor=actor,
            actor_name=actor_name,
            before={"key": before[:15]} if before else None,
            after={"key": text[:15]},
            address=address,
        )
    project.settings = stored.settings
    return text
