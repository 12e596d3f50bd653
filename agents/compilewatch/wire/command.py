"""Signed command: a request of the dashboard to processes that allow it, with an expiry.

The signing key occurs in no report. In an answer, a command is the object `{"body": base64,
"ed25519": {public key: base64}, "signed": base64}`.
- `body` is the command's JSON.
- `ed25519` maps each public key (hexadecimal) to its signature over `ED25519_CONTEXT` and the bytes
  of `body`.
- `signed` is for agents without a public key, in this release only: the HMAC-SHA256 over `CONTEXT`
  and the same JSON, followed by that JSON.
"""

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
"""The commands that a job can allow: no new compilations, or no compiled code."""
RESTORE = "restore"
"""Ends either command early; every job that allows one of them allows this one."""
CONTEXT = b"compilewatch command 1\n"
ED25519_CONTEXT = b"compilewatch-command-ed25519-1\n"
MAC_BYTES = 32
SIGNATURE_BYTES = 64
MAX_COMMAND_BYTES = 4096
MAX_COMMANDS = 8
MAX_LIFETIME_SECONDS = 900.0
"""Longest duration of a command in seconds; the dashboard renews a command for longer durations."""
MAX_NAME = 512
MAX_INSTANCES = 64
MAX_COUNTER = (1 << 63) - 1
KEY_PREFIX = "cw_cmd_"

REFUSALS = {
    "malformed": (
        "not a command: not an object with the required texts, not base64, or not the JSON of a "
        "command"
    ),
    "too_large": "larger than the limit for a command",
    "forged": (
        "the signature does not match this job's key: forged, changed in transit, or signed for "
        "another project"
    ),
    "not_signed": (
        "no signature for this job's public key: an earlier dashboard, or the key was replaced "
        "twice since"
    ),
    "foreign_project": "the command names another project than the key",
    "wrong_format": "another version of the protocol",
    "wrong_type": "a field has a wrong type or value; the detail names it",
    "unknown_verb": "unknown verb",
    "not_allowed": "this job does not allow the verb",
    "wrong_target": "the command is for another model, version, environment or instance",
    "expired": "expired, by the clock of this host",
    "too_long": "longer than the limit for a command, by the clock of this host",
    "replayed": "a command with this number or a later one was already accepted",
    "nothing_to_switch": "no watched region of this process uses torch.compile",
    "too_many": "the answer holds more commands than allowed",
}
"""Why a command was refused; each refusal is counted and reported."""
RECEIPTS = ("ready", "accepted", "applied", "ended", "refused")


class CommandRefused(Exception):
    """A command is refused; `code` is one of REFUSALS."""

    def __init__(self, code: str, detail: str = "", command: Command | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.command = command


@dataclass(slots=True)
class Command:
    """Who does what, from when until when; times are Unix seconds."""

    id: str
    project: str
    """The public part of the command key."""
    verb: str
    counter: int
    model: str
    version: str
    environment: str
    not_before: float
    expires: float
    instances: list[str] = field(default_factory=list)
    """Instances to include regardless of `share`."""
    share: float = 0.0
    """Includes the instances whose `cohort` is below it; the ranks of one job share one cohort."""
    ask: bool = False
    """A dry run: the instance only answers whether it would apply the command."""
    v: int = 1

    def includes(self, instance: str, job: str) -> bool:
        """Returns whether the command includes this instance."""
        return instance in self.instances or cohort(self.id, job or instance) < self.share


def cohort(command: str, unit: str) -> float:
    """Maps an instance or a whole job to a number in [0, 1).

    Only the part of `command` before the first `.` counts: all stages of one rollout order the
    instances alike, so a larger share includes every smaller one.
    """
    digest = hashlib.sha256(
        f"{command.partition('.')[0]}\0{unit}".encode("utf-8", "replace")
    ).digest()
    return int.from_bytes(digest[:6], "big") / (1 << 48)


def key_project(key: str) -> str:
    """Returns the project that a key belongs to; empty if the text is not a key."""
    parts = key.split("_")
    return parts[2] if key.startswith(KEY_PREFIX) and len(parts) == 4 and len(parts[2]) == 8 else ""


def command_body(command: Command) -> bytes:
    """Encodes the bytes to sign, without their context."""
    body = json.dumps(
        asdict(command), separators=(",", ":"), sort_keys=True, allow_nan=False
    ).encode()
    if len(body) > MAX_COMMAND_BYTES:
        raise ValueError(f"A command of {len(body)} bytes is larger than {MAX_COMMAND_BYTES}.")
    return body


def command_sign(command: Command, key: str) -> bytes:
    """Builds `signed`, before base64."""
    body = command_body(command)
    return hmac.new(key.encode(), CONTEXT + body, hashlib.sha256).digest() + body


def command_open(item: Any, key: str) -> Command:
    """Decodes a command after checking its MAC; raises CommandRefused."""
    signed = _bytes(
        item.get("signed") if isinstance(item, dict) else None, MAX_COMMAND_BYTES + MAC_BYTES
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
    item: Any, public_key: str, verifies: Callable[[bytes, bytes], bool]
) -> Command:
    """Decodes a command after checking its Ed25519 signature for a public key; raises
    CommandRefused.

    `verifies` takes the signature and the message. A MAC is ignored. `project` is not checked,
    because the key belongs to one project.
    """
    if not isinstance(item, dict):
        raise CommandRefused("malformed")
    signatures = item.get("ed25519")
    if not isinstance(signatures, dict) or public_key not in signatures:
        raise CommandRefused("not_signed")
    signature, body = (
        _bytes(signatures[public_key], SIGNATURE_BYTES),
        _bytes(item.get("body"), MAX_COMMAND_BYTES),
    )
    if not verifies(signature, ED25519_CONTEXT + body):
        raise CommandRefused("forged")
    return _read(body)


def _bytes(text: Any, max_bytes: int) -> bytes:
    if not isinstance(text, str):
        raise CommandRefused("malformed")
    if len(text) > 4 * (max_bytes + 2) // 3:
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
    unknown = set(data) - {item.name for item in fields(Command)}
    if unknown:
        raise CommandRefused("wrong_type", f"unknown field {min(unknown)[:40]}")
    for name, check in _CHECKS.items():
        if not check(data[name]) if name in data else name in _REQUIRED:
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
_REQUIRED = (
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
