"""A command: what a dashboard may ask of processes that allow it; signed with a key that no report carries, and over by itself.

In an answer it is `{"body": base64, "ed25519": {public key: base64}, "signed": base64}`. `body` is the command's JSON. `ed25519` holds
signatures over `ED25519_CONTEXT` and the bytes of `body`, by the public key in hexadecimal digits. `signed` is for agents without one, for
this release: the HMAC-SHA256 over `CONTEXT` and the same JSON, followed by that JSON."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

VERBS = ("freeze", "eager")
"""What a job may allow: no new compilations, or no compiled code at all."""
RESTORE = "restore"
"""Takes either back before its time; whoever allows one of them allows this."""
CONTEXT = b"compilewatch command 1\n"
ED25519_CONTEXT = b"compilewatch-command-ed25519-1\n"
MAC_BYTES = 32
SIGNATURE_BYTES = 64
MAX_COMMAND_BYTES = 4096
MAX_COMMANDS = 8
MAX_LIFETIME = 900.0
"""Seconds that a command may be in force; what is wanted for longer is renewed."""
MAX_NAME = 512
MAX_INSTANCES = 64
MAX_COUNTER = (1 << 63) - 1
KEY_PREFIX = "cw_cmd_"

REFUSALS = {
    "malformed": "it is no command: not an object with the texts that it needs, not base64, or not the JSON of a command",
    "too_large": "it is larger than a command can be",
    "forged": "its signature is not that of this job's key: made up, changed on its way, or signed for another project",
    "not_signed": "it carries no signature for this job's public key: an earlier dashboard, or the key was replaced twice since",
    "foreign_project": "it names another project than the key belongs to",
    "wrong_format": "it is of another version of the protocol",
    "wrong_type": "a field has a type or a value that it cannot have; the detail names it",
    "unknown_verb": "it asks for something that there is not",
    "not_allowed": "the job did not allow this verb",
    "wrong_target": "it is for another model, version, environment or instance",
    "expired": "its time is over, by the clock of this host",
    "too_long": "it would last longer than a command may, by the clock of this host",
    "replayed": "a command with this number, or a later one, was taken before",
    "nothing_to_switch": "nothing that is watched in this process came out of torch.compile",
    "too_many": "an answer held more commands than one may",
}
"""Why a command is not followed; every one is counted and told."""
RECEIPTS = ("ready", "accepted", "applied", "ended", "refused")


class CommandRefused(Exception):
    """It is not followed; `code` is one of REFUSALS."""

    def __init__(self, code: str, detail: str = "", command: Command | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.command = command


@dataclass(slots=True)
class Command:
    """Who is to do what, and from when until when; times are Unix seconds."""

    id: str
    project: str
    """The part of the command key that is no secret."""
    verb: str
    counter: int
    model: str
    version: str
    environment: str
    not_before: float
    expires: float
    instances: list[str] = field(default_factory=list)
    """These, whatever `share` says."""
    share: float = 0.0
    """The part of the instances whose `cohort` lies below it; the ranks of one job have one."""
    ask: bool = False
    """Nothing is to be done: only whether it would be."""
    v: int = 1

    def concerns(self, instance: str, job: str) -> bool:
        """Whether it is for this instance."""
        return instance in self.instances or cohort(self.id, job or instance) < self.share


def cohort(command: str, unit: str) -> float:
    """Where an instance, or a whole job, stands among all, from 0 to below 1; `command` is its id up to the first `.`: all stages of one
    switch order them alike, so that a larger share holds every smaller one."""
    digest = hashlib.sha256(
        f"{command.partition('.')[0]}\0{unit}".encode("utf-8", "replace")
    ).digest()
    return int.from_bytes(digest[:6], "big") / (1 << 48)


def key_project(key: str) -> str:
    """The project a key belongs to; empty for what is no key."""
    parts = key.split("_")
    return parts[2] if key.startswith(KEY_PREFIX) and len(parts) == 4 and len(parts[2]) == 8 else ""


def command_body(command: Command) -> bytes:
    """The bytes that are signed, after their context."""
    body = json.dumps(
        asdict(command), separators=(",", ":"), sort_keys=True, allow_nan=False
    ).encode()
    if len(body) > MAX_COMMAND_BYTES:
        raise ValueError(f"A command of {len(body)} bytes is larger than {MAX_COMMAND_BYTES}.")
    return body


def command_sign(command: Command, key: str) -> bytes:
    """`signed`, before base64."""
    body = command_body(command)
    return hmac.new(key.encode(), CONTEXT + body, hashlib.sha256).digest() + body


def command_open(given: Any, key: str) -> Command:
    """The command in an answer, its MAC checked before anything in it is looked at; raises CommandRefused."""
    signed = _bytes(
        given.get("signed") if isinstance(given, dict) else None, MAX_COMMAND_BYTES + MAC_BYTES
    )
    body = signed[MAC_BYTES:]
    if not hmac.compare_digest(
        hmac.new(key.encode(), CONTEXT + body, hashlib.sha256).digest(), signed[:MAC_BYTES]
    ):
        raise CommandRefused("forged")
    command = _read(body)
    if command.project != key_project(key):
        raise CommandRefused("foreign_project", command=command)
    return command


def command_open_public(
    given: Any, public_key: str, verifies: Callable[[bytes, bytes], bool]
) -> Command:
    """The same by the Ed25519 signature that the answer has for a public key, whose `verifies` takes it and the message; whatever MAC there
    is counts for nothing. The key belongs to one project alone, so `project` is not looked at."""
    if not isinstance(given, dict):
        raise CommandRefused("malformed")
    signatures = given.get("ed25519")
    if not isinstance(signatures, dict) or public_key not in signatures:
        raise CommandRefused("not_signed")
    signature, body = (
        _bytes(signatures[public_key], SIGNATURE_BYTES),
        _bytes(given.get("body"), MAX_COMMAND_BYTES),
    )
    if not verifies(signature, ED25519_CONTEXT + body):
        raise CommandRefused("forged")
    return _read(body)


def _bytes(text: Any, most: int) -> bytes:
    if not isinstance(text, str):
        raise CommandRefused("malformed")
    if len(text) > 4 * (most + 2) // 3:
        raise CommandRefused("too_large")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CommandRefused("malformed") from None


def _read(body: bytes) -> Command:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise CommandRefused("malformed") from None
    if not isinstance(data, dict):
        raise CommandRefused("malformed")
    if type(data.get("v")) is not int or data["v"] != 1:
        raise CommandRefused("wrong_format")
    unknown = set(data) - {one.name for one in fields(Command)}
    if unknown:
        raise CommandRefused("wrong_type", f"unknown field {min(unknown)[:40]}")
    for name, check in _CHECKS.items():
        if not check(data[name]) if name in data else name in _NEEDED:
            raise CommandRefused("wrong_type", name)
    command = Command(**data)
    if command.verb not in (*VERBS, RESTORE):
        raise CommandRefused("unknown_verb", command=command)
    if command.expires <= command.not_before:
        raise CommandRefused("wrong_type", "expires", command)
    return command


def _name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME


def _number(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value < 1e11
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "id": _name,
    "project": _name,
    "verb": _name,
    "model": _name,
    "version": _name,
    "environment": _name,
    "counter": lambda value: type(value) is int and 0 < value <= MAX_COUNTER,
    "not_before": _number,
    "expires": _number,
    "instances": lambda value: (
        isinstance(value, list) and len(value) <= MAX_INSTANCES and all(map(_name, value))
    ),
    "share": lambda value: _number(value) and value <= 1,
    "ask": lambda value: isinstance(value, bool),
}
_NEEDED = (
    "id",
    "project",
    "verb",
    "counter",
    "model",
    "version",
    "environment",
    "not_before",
    "expires",
)
