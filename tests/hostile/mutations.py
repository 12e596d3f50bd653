"""Corrupts good requests at random: bytes flipped, cut and doubled, JSON values exchanged; equal
seeds give equal bytes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from compilewatch.wire.codec import deflate

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, -(2**63), 1e308, -1e308, 5e-324, 0.5, "", "x", "\u202e", "\ud7ff", "\uffff",
    "0" * 600, [], [[]], {}, {"": None}, [1, 2, 3], "2026-11-20T10:00:00Z", "__proto__", 1e15, 32503680000.0, -0.0,
)  # fmt: skip
LITERALS = (
    b"NaN",
    b"Infinity",
    b"1e400",
    b"1e100000",
    b"-0",
    b"1" * 400,
    b'"\\ud800"',
    b'"\\u0000"',
    b"01",
    b"1.",
    b".5",
    b"+1",
    b"tru",
    b"[",
    b"}",
)


def mutant(rnd: random.Random, data: dict[str, Any]) -> tuple[bytes, bool]:
    """A corrupted body, and whether it is sent as gzip."""
    data = copy.deepcopy(data)
    for _ in range(rnd.choice((0, 1, 1, 2, 4))):
        exchange(rnd, data)
    body = json.dumps(data).encode()
    if rnd.random() < 0.4:
        body = spoil_bytes(rnd, body)
    if rnd.random() < 0.2:
        body = spoil_literal(rnd, body)
    if rnd.random() < 0.5:
        return body, False
    packed = deflate(body)
    return (spoil_bytes(rnd, packed) if rnd.random() < 0.2 else packed), True


def exchange(rnd: random.Random, data: Any) -> None:
    """Descends to a random place and replaces, drops, doubles or moves the value there."""
    parent, at = data, None
    while True:
        steps = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        if not steps:
            return
        at = rnd.choice(steps)
        child = parent[at]
        if not isinstance(child, (dict, list)) or not child or rnd.random() < 0.15:
            break
        parent = child
    kind = rnd.randrange(5)
    if kind == 0:
        del parent[at]
    elif kind == 1 and isinstance(parent, list):
        parent.extend(copy.deepcopy(parent[at]) for _ in range(rnd.choice((1, 2, 40, 300))))
    elif kind == 2 and isinstance(parent, dict):
        parent[rnd.choice(list(parent))] = copy.deepcopy(parent[at])
    elif kind == 3 and isinstance(parent[at], (int, float)) and not isinstance(parent[at], bool):
        parent[at] = parent[at] * rnd.choice((-1, 0, 2, 1000, 1e9, 1.0000001)) + rnd.choice(
            (0, 1, -1, 0.5)
        )
    else:
        parent[at] = copy.deepcopy(rnd.choice(VALUES))


def spoil_bytes(rnd: random.Random, body: bytes) -> bytes:
    """One to eight bytes flipped, dropped or inserted, or a part doubled or cut off."""
    found = bytearray(body)
    for _ in range(rnd.choice((1, 1, 2, 8))):
        if not found:
            break
        at = rnd.randrange(len(found))
        kind = rnd.randrange(5)
        if kind == 0:
            found[at] ^= 1 << rnd.randrange(8)
        elif kind == 1:
            del found[at : at + rnd.choice((1, 4, 100))]
        elif kind == 2:
            found[at:at] = rnd.randbytes(rnd.choice((1, 4)))
        elif kind == 3:
            found[at:at] = found[at : at + rnd.choice((1, 20, 500))]
        elif rnd.random() < 0.2:
            del found[at:]
    return bytes(found)


def spoil_literal(rnd: random.Random, body: bytes) -> bytes:
    """A value in the text, written as no JSON library would write it."""
    at = body.find(b": ", rnd.randrange(len(body) or 1))
    if at < 0:
        return body
    end = min(
        (place for place in (body.find(b",", at), body.find(b"}", at)) if place > 0),
        default=len(body),
    )
    return body[: at + 2] + rnd.choice(LITERALS) + body[end:]
