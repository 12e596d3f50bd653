"""A golden batch repeated with TF32 off: a fault that is smaller than what a GPU's convolutions round away.

cuDNN reads the switch at each call, and torch guards no compiled code by it. Code that rounds all the same is compared no further: the
kernels of a CUDA graph, which are replayed as they were recorded, and what has no convolution. Code that rounds in part, such as a Triton
template with TF32 built in, would look like a fault: so only what fails in a compilation without TF32 too is certain, and the rest a
finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from compilewatch.errors import NotCompared
from compilewatch.numerics.isolated_run import Result
from compilewatch.numerics.tf32 import full_convolutions, is_rough
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import MAX_WHY, Parity, parity_words


class Again(NamedTuple):
    """How the batch is repeated and judged."""

    compiled: Callable[[], Result]
    eager: Callable[[], Result]
    recompiled: Callable[[], Result | None]
    """Compiled with an empty cache; None where that cannot be had."""
    judge: Callable[[Result, Result], Parity]
    """Of a compiled and an eager result."""


def judge_without_tf32(torch: Any, outcome: Parity, compiled: Result, again: Again) -> Parity:
    """The outcome of a batch that passed, or `failed` where it certainly fails with TF32 off."""
    if outcome.state != "passed" or not any(
        is_rough(torch, one) for one in compiled.outputs.values()
    ):
        return outcome
    with full_convolutions(torch) as switched:
        if not switched:
            return outcome
        try:
            return _judge(torch, outcome, compiled, again)
        except NotCompared:  # it passed with TF32, which is what traffic gets
            return outcome


def _judge(torch: Any, outcome: Parity, compiled: Result, again: Again) -> Parity:
    result = again.compiled()
    if _same(torch, result, compiled):
        return outcome
    eager = again.eager()
    found = again.judge(result, eager)
    if found.state != "failed" or again.judge(again.compiled(), eager).state != "failed":
        return outcome
    words = f"with TF32 off {parity_words(found)}"
    recompiled = again.recompiled()
    if recompiled is not None and again.judge(recompiled, eager).state == "failed":
        return replace(found, why=clip(words, MAX_WHY))
    RECORDER.finding("golden_hidden_by_tf32", f"{outcome.name}: passes, but {words}")
    return outcome


def _same(torch: Any, one: Result, other: Result) -> bool:
    return all(
        torch.equal(one.outputs[place], other.outputs[place])
        for place in other.outputs
        if place in one.outputs
    )
