"""Which kernel was the fastest of those that inductor measured, by operator and inputs: what this process told of it so far."""

from __future__ import annotations

import math
from typing import Any

from compilewatch.identity.sha256 import sha256_hex
from compilewatch.wire.messages import KERNEL

MOST = 64
"""Operators that are told; of further ones nothing is."""
_SHOWN = 40
_DIGITS = 6

CHOSEN: dict[str, str] = {}
"""Components of the identity. A forked child runs what its parent chose."""


def chosen_note(operator: object, inputs: object, timings: dict[Any, float]) -> None:
    """Inductor has measured these kernels for an operator, now or in an earlier process. Raises whatever torch's objects raise."""
    measured = {choice: seconds for choice, seconds in timings.items() if math.isfinite(seconds)}
    place = f"{KERNEL}{str(operator)[:_SHOWN]} {_digest(str(inputs))}"
    if len(measured) > 1 and (place in CHOSEN or len(CHOSEN) < MOST):
        fastest = min(measured, key=lambda choice: measured[choice])
        CHOSEN[place] = f"{_plain(str(fastest.name))[:_SHOWN]} {_digest(str(fastest.hash_key()))}"


def _plain(name: str) -> str:
    """Without the number that counts templates in their process."""
    front, _, number = name.rpartition("_")
    return front if front and number.isdigit() else name


def _digest(text: str) -> str:
    return sha256_hex(text.encode("utf-8", "replace"))[:_DIGITS]
