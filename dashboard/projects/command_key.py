"""Command keys: sign commands to a project's jobs, derived from the server's pepper and a nonce in
the project's settings.

The key pair is Ed25519, and jobs hold the public key. `derive_command_key` returns the symmetric
key of the previous release.
"""

from __future__ import annotations

import base64
import secrets

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.projects.key_format import key_text_derive, seed_derive
from dashboard.projects.models import Project

COMMAND_KEY_SETTING = "command_key"


def derive_command_key(project: Project) -> str:
    """The current symmetric key; empty if the project has none."""
    known = project.settings.get(COMMAND_KEY_SETTING)
    return (
        key_text_derive("cmd", settings.KEY_PEPPER, known["nonce"])
        if isinstance(known, dict)
        else ""
    )


def list_public_keys(project: Project) -> list[str]:
    """Public keys in hexadecimal: the current key for jobs, then the previous key, which still
    verifies."""
    return [_public(pair) for pair in _derive_key_pairs(project)]


def sign_command(project: Project, message: bytes) -> dict[str, str]:
    """Signs with the current and the previous key pair. Returns base64 signatures by public key."""
    return {
        _public(pair): base64.b64encode(pair.sign(message)).decode()
        for pair in _derive_key_pairs(project)
    }


def command_key_create(
    *, project: Project, actor: User | None = None, actor_name: str = "", address: str | None = None
) -> str:
    """Creates new keys. Returns the symmetric key, which is shown once.

    Jobs with the previous symmetric key follow no command from now on. Jobs with the previous
    public key follow commands until the next renewal. Only the server can sign for either.
    """
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before, public_before = derive_command_key(stored), list_public_keys(stored)[:1]
        known = {"nonce": secrets.token_hex(16), "made_at": clock.now().isoformat()}
        if before:
            known["nonce_before"] = stored.settings[COMMAND_KEY_SETTING]["nonce"]
        stored.settings = {**stored.settings, COMMAND_KEY_SETTING: known}
        stored.save(update_fields=["settings"])
        text = derive_command_key(stored)
        audit_write(
            action="command_key.make",
            subject=text[:15],
            project_id=project.pk,
            actor=actor,
            actor_name=actor_name,
            before={"key": before[:15], "public_key": public_before[0]} if before else None,
            after={"key": text[:15], "public_key": list_public_keys(stored)[0]},
            address=address,
        )
    project.settings = stored.settings
    return text


def _derive_key_pairs(project: Project) -> list[Ed25519PrivateKey]:
    """Key pairs, newest first. The seed includes the project's ID, so a copied nonce yields another
    key in another project."""
    known = project.settings.get(COMMAND_KEY_SETTING)
    nonces = (
        [known.get(name) for name in ("nonce", "nonce_before")] if isinstance(known, dict) else []
    )
    seeds = [
        seed_derive("cmd", settings.KEY_PEPPER, f"{project.pk} {nonce}")
        for nonce in nonces
        if nonce
    ]
    return [Ed25519PrivateKey.from_private_bytes(seed) for seed in seeds]


def _public(pair: Ed25519PrivateKey) -> str:
    return pair.public_key().public_bytes_raw().hex()
