"""The signed bytes are part of the protocol: a stored response is verified by both keys, and signed
identically today."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from compilewatch.wire.command import (
    Command,
    CommandRefused,
    command_body,
    command_open,
    command_open_public,
    command_sign,
)
from compilewatch.wire.ed25519 import PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.architecture.tree import REPOSITORY

KEPT = REPOSITORY / "tests/data/wire/v1/ack-signed-command.json"
PUBLIC = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
PRIVATE = bytes(range(32))
SYMMETRIC = "cw_cmd_8charsid_" + "k" * 49
COMMAND = Command(
    "a1.1",
    "8charsid",
    "eager",
    1,
    "ranker",
    "1",
    "production",
    1_800_000_000.0,
    1_800_000_300.0,
    share=1.0,
)


@pytest.fixture
def given() -> dict[str, Any]:
    [one] = json.loads(KEPT.read_text())["commands"]
    return one


def test_the_public_key_opens_it(given: dict[str, Any]) -> None:
    assert command_open_public(given, PUBLIC, PublicKey(bytes.fromhex(PUBLIC)).verify) == COMMAND


def test_the_symmetric_key_of_the_release_before_opens_it(given: dict[str, Any]) -> None:
    assert command_open(given, SYMMETRIC) == COMMAND


def test_the_signature_covers_a_line_and_the_body_as_documented(
    given: dict[str, Any],
) -> None:
    line = "compilewatch-command-ed25519-1"
    guide = " ".join((REPOSITORY / "agents/docs/guide/kill-switch.md").read_text().split())
    assert f"over the {len(line)} characters `{line}`, a line feed (0x0A)" in guide
    signature = Ed25519PrivateKey.from_private_bytes(PRIVATE).sign(
        line.encode() + b"\n" + base64.b64decode(given["body"])
    )
    assert given["ed25519"] == {PUBLIC: base64.b64encode(signature).decode()}


def test_both_signatures_are_over_the_same_command(given: dict[str, Any]) -> None:
    assert (
        base64.b64decode(given["body"])
        == command_body(COMMAND)
        == base64.b64decode(given["signed"])[32:]
    )
    assert base64.b64decode(given["signed"]) == command_sign(COMMAND, SYMMETRIC)


def test_the_verifier_decides_and_is_given_that_message(given: dict[str, Any]) -> None:
    asked: list[bytes] = []
    with pytest.raises(CommandRefused, match="forged"):
        command_open_public(given, PUBLIC, lambda signature, message: bool(asked.append(message)))
    assert asked == [b"compilewatch-command-ed25519-1\n" + base64.b64decode(given["body"])]
