"""TF32 rerun: repeats a golden batch with TF32 off, to find errors smaller than TF32's rounding.

cuDNN reads its TF32 setting at each call, and torch has no guard on the setting. Two kinds of code
ignore the setting and are not compared further: recorded kernels of a CUDA graph, and code without
a convolution. Code that ignores the setting in part, such as a Triton template compiled with TF32,
would look wrong. Therefore only a batch that also fails in a compilation without TF32 has failed;
any other difference is a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError
from compilewatch.numerics.isolated_run import Result
from compilewatch.numerics.tf32 import disable_conv_tf32, is_rough
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import MAX_WHY, Parity, parity_words


class RerunPlan(NamedTuple):
    """The ways to repeat and judge the batch."""

    compiled: Callable[[], Result]
    eager: Callable[[], Result]
    recompiled: Callable[[], Result | None]
    """Compiles with an empty cache; None if that is impossible."""
    judge: Callable[[Result, Result], Parity]
    """Judges a compiled result with an eager result."""


def judge_without_tf32(torch: Any, outcome: Parity, compiled: Result, again: RerunPlan) -> Parity:
    """Repeats a batch that passed; it fails if a failure with TF32 off is confirmed."""
    if outcome.state != "passed" or not any(
        is_rough(torch, one) for one in compiled.outputs.values()
    ):
        return outcome
    with disable_conv_tf32(torch) as is_full_precision:
        if not is_full_precision:
            return outcome
        try:
            return _judge(torch, outcome, compiled, again)
        except ComparisonError:  # it passed with TF32, which traffic uses
            return outcome


def _judge(torch: Any, outcome: Parity, compiled: Result, again: RerunPlan) -> Parity:
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
    RECORDER.record_finding("golden_hidden_by_tf32", f"{outcome.name}: passes, but {words}")
    return outcome


def _same(torch: Any, one: Result, other: Result) -> bool:
    return all(
        torch.equal(one.outputs[place], other.outputs[place])
        for place in other.outputs
        if place in one.outputs
    )
