"""Autotuning choices: the fastest kernel that Inductor measured, per operator and inputs."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from compilewatch.wire.messages import KERNEL

MAX_OPERATORS = 64
"""Maximum number of operators reported; the choices of further operators are dropped."""
_SHOWN = 40
_DIGITS = 6

KERNEL_CHOICES: dict[str, str] = {}
"""Components of the identity. A forked child keeps its parent's choices."""


def note_choice(operator: object, inputs: object, timings: dict[Any, float]) -> None:
    """Records the kernels that Inductor measured for an operator, now or in an earlier process.

    Raises any error that torch's objects raise.
    """
    measured = {choice: seconds for choice, seconds in timings.items() if math.isfinite(seconds)}
    place = f"{KERNEL}{str(operator)[:_SHOWN]} {_digest(str(inputs))}"
    if len(measured) > 1 and (place in KERNEL_CHOICES or len(KERNEL_CHOICES) < MAX_OPERATORS):
        fastest = min(measured, key=lambda choice: measured[choice])
        KERNEL_CHOICES[place] = (
            f"{_plain(str(fastest.name))[:_SHOWN]} {_digest(str(fastest.hash_key()))}"
        )


def _plain(name: str) -> str:
    """Removes the process-wide number that Inductor appends to template names."""
    front, _, number = name.rpartition("_")
    return front if front and number.isdigit() else name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
