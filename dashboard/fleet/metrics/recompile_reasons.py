"""Recompile reasons: the labels of each kind, and a remedy where the kind determines it."""

from __future__ import annotations

from typing import NamedTuple


class ReasonText(NamedTuple):
    """Label of a kind, a sentence about `{it}`, and a remedy. The remedy is empty if it depends on
    the reason's text."""

    name: str
    sentence: str
    remedy: str = ""


GUARD = ReasonText("Guard failed", "{it} recompiles")
REPEAT_REASONS = {
    "reset": ReasonText(
        "After a reset",
        "{it} recompiles after torch._dynamo.reset()",
        "Call torch._dynamo.reset() at most once, before warm-up: the call drops all compiled "
        "code of the process.",
    ),
    "new code object": ReasonText(
        "New code object",
        "{it} recompiles as a new code object",
        "Define the function once, at module level or in a constructor, and keep the result of "
        "torch.compile: a function that is created for each call is compiled for each call.",
    ),
    "failed again": ReasonText(
        "Failed again",
        "{it} recompiles at each call because the compilation fails",
        "Fix the compile error, or exclude the function with torch.compiler.disable: each "
        "attempt stalls the call.",
    ),
}
"""Kinds without a failed guard: the same function at the same place is compiled again."""
REASONS = {
    "guard": GUARD,
    "race": ReasonText(
        "Race",
        "threads compile {it} at the same time",
        "Warm up the function in one thread before other threads call it.",
    ),
    "limit": ReasonText("Limit reached", "{it} reached its recompile limit"),
    "failure": ReasonText("Failed", "{it} failed to compile"),
    **REPEAT_REASONS,
}


def reason_name(kind: str) -> str:
    """Return the label of a kind; a kind of a newer agent appears under its own name."""
    return REASONS[kind].name if kind in REASONS else kind.replace("_", " ").capitalize()


def reason_sentence(kind: str, it: str, text: str) -> str:
    """Return the reason as a sentence, followed by the text of the guard or error."""
    said = REASONS.get(kind, GUARD).sentence.format(it=it)
    name = (
        "error"
        if kind in ("failure", "failed again")
        else "guard"
        if kind in ("", "guard")
        else "reason"
    )
    return f"{said} ({name}: {text})" if text else said


def summarize_reason(kind: str, text: str) -> str:
    """Return the short form of a reason for lists.

    The label if no guard failed, else the first line of the text; empty without a reason.
    """
    return (
        reason_name(kind) if kind in REPEAT_REASONS else next(iter(text.strip().splitlines()), "")
    )
