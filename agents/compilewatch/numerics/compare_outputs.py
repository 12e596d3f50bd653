"""Output comparison: a compiled and an eager result, tensor by tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError
from compilewatch.numerics.isolated_run import split_leaves
from compilewatch.numerics.tolerance import Comparison, compare_tensors, find_worst
from compilewatch.recording.call_sampling import draw_uniform

MAX_VALUES = 1 << 22
"""Values of an output that are kept and compared on a GPU.

A larger output is sampled at a fixed step from a random offset, so that the copies do not raise the
memory peak."""
STRUCTURE_DIFFERS = "compiled and eager results differ in structure or in a value that is no tensor"


class Pair(NamedTuple):
    """One output of both results."""

    place: str
    compiled: Any
    eager: Any


def pair_outputs(torch: Any, compiled: Any, eager: Any, on_gpu: bool) -> list[Pair] | Comparison:
    """Pairs the outputs; returns a failed comparison if the two results differ in structure.

    On a GPU the comparison runs later, on copies: the next replay of a CUDA graph, or the job, may
    overwrite the outputs."""
    with torch.no_grad(), torch.inference_mode(False):
        mine, my_rest = split_leaves(torch, compiled)
        theirs, their_rest = split_leaves(torch, eager)
        if mine.keys() != theirs.keys() or my_rest != their_rest:
            return Comparison("output", 0.0, 0.0, 0.0, 0, 0, False, STRUCTURE_DIFFERS)
        if not theirs:
            raise ComparisonError("it returns no tensor")
        pairs = [Pair(place, mine[place].detach(), one.detach()) for place, one in theirs.items()]
        return [_copy(one) for one in pairs] if on_gpu else pairs


def _copy(pair: Pair) -> Pair:
    place, compiled, eager = pair
    if compiled.shape == eager.shape and eager.numel() > MAX_VALUES:
        step = -(-eager.numel() // MAX_VALUES)
        first = int(draw_uniform() * step)
        compiled, eager = (one.reshape(-1)[first::step] for one in (compiled, eager))
    return Pair(place, compiled.clone(), eager.clone())


def compare_pairs(torch: Any, pairs: list[Pair]) -> tuple[Comparison, float]:
    """The worst comparison, and the largest error as a share of its output."""
    with torch.no_grad(), torch.inference_mode(False):
        found = [compare_tensors(torch, one.place, one.compiled, one.eager, None) for one in pairs]
        theirs = {one.place: one.eager for one in pairs}
        share = max([0.0, *(_relative_error(one, theirs) for one in found if not one.wrong)])
    bad, eager_bad = sum(one.nonfinite for one in found), sum(one.eager_nonfinite for one in found)
    return find_worst(found)._replace(nonfinite=bad, eager_nonfinite=eager_bad), share


def _relative_error(one: Comparison, theirs: dict[str, Any]) -> float:
    """The error as a share of the size of the output."""
    eager = theirs[one.where.removeprefix("one value of ")].detach().abs().double()
    size = float(eager.max() if one.where not in theirs else eager.square().mean().sqrt())
    return one.error / size if 0.0 < size < float("inf") else 0.0
