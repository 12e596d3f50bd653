"""Why a function was compiled again: words for each kind of reason, and what to do where the kind
alone says it."""

from __future__ import annotations

from typing import NamedTuple


class ReasonText(NamedTuple):
    """A kind of reason as a heading, as a sentence about `{it}`, and its remedy; empty where the
    text of the reason has to say it."""

    name: str
    sentence: str
    remedy: str = ""


GUARD = ReasonText("Guard failed", "{it} recompiles")
REPEAT_REASONS = {
    "reset": ReasonText(
        "After a reset",
        "{it} is compiled again after torch._dynamo.reset()",
        "Call torch._dynamo.reset() at most once, before warm-up: it drops all compiled "
        "code of the process.",
    ),
    "new code object": ReasonText(
        "New code object",
        "{it} is compiled again as a new code object",
        "Define the function once, at module level or in a constructor, and keep what "
        "torch.compile returns: "
        "code that is made for each call is compiled for each call.",
    ),
    "failed again": ReasonText(
        "Failed again",
        "{it} is compiled again at each call because the compilation fails",
        "Fix the error of the compilation, or exclude the function with "
        "torch.compiler.disable: each attempt stalls the call.",
    ),
}
"""The same function and place is compiled again, and no guard of it failed."""
REASONS = {
    "guard": GUARD,
    "race": ReasonText(
        "Race",
        "threads compile {it} at the same time",
        "Warm the function up in one thread before other threads call it.",
    ),
    "limit": ReasonText("Limit reached", "{it} reached its recompile limit"),
    "failure": ReasonText("Failed", "{it} failed to compile"),
    **REPEAT_REASONS,
}


def reason_name(kind: str) -> str:
    """A kind as a heading; one of a newer agent under its own name."""
    return REASONS[kind].name if kind in REASONS else kind.replace("_", " ").capitalize()


def reason_sentence(kind: str, it: str, text: str) -> str:
    """Why it was compiled again; the text of a guard or an error follows it."""
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
    """What a list of reasons shows of one: the kind where no guard failed, else the first line of
    its text; empty without a reason."""
    return (
        reason_name(kind) if kind in REPEAT_REASONS else next(iter(text.strip().splitlines()), "")
    )
