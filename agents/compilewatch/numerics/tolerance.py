"""Tolerance rule: bounds the compiled error by a multiple of eager's own error plus a share.

Both errors are against a reference in a higher precision, `exact`:

- The tensor passes if rms(compiled - exact) <= f * rms(eager - exact) + s * min(1, rms(exact)).
- The elements pass if max(compiled - exact) <= 5 * (f * max(eager - exact) + s * max(exact)).

`f` is 2, 3 or 10: larger for few elements and for low precision. `s` is a tenth of torch's
tolerance for the dtype. Sizes below `MIN_SIZE` count as `MIN_SIZE`. Without a reference the error
is compared with the size of eager alone, with a wider share (`EAGER_ONLY_SHARE`). An integer tensor
may differ in twice the share of elements in which eager differs from its reference, or in
`MAX_TIES` elements. An argmax may differ where its two scores are close (`compare_argmax`).

Invariants: the rule compares only values that are finite in eager; a new NaN or infinity fails. If
eager itself deviates by more than `BLIND_SHARE`, the comparison proves nothing and is not a pass.
Cost: a few passes over each tensor in float64, on the device of the tensor.
Source: the RMSE branch of `torch._dynamo.utils.same` gives `f` and `s`. The other constants are the
agent's own; `tests/agent/golden_real` tries them on real models with planted errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compilewatch.numerics.tf32 import is_rough

SINGLE, HALF, DOUBLE = 1e-4, 1e-3, 1e-7
"""torch's tolerances by precision; a tenth of each is allowed on top of eager's error."""
EAGER_ONLY_SHARE = {SINGLE: 1e-4, HALF: 3e-2, DOUBLE: 1e-9}
"""Allowed error as a share of the result's size if eager is the only reference."""
EAGER_ONLY_TF32_SHARE = 1e-2
"""Replaces `EAGER_ONLY_SHARE` on a GPU that may use TF32: one of the two results may have rounded
operands."""
MIN_SIZE = 1e-3
"""Minimum size of a result in the rule: a result that cancels to zero still has rounding errors."""
ELEMENT_FACTOR = 5.0
"""Factor between the allowed error of one element and that of the whole tensor."""
MAX_TIES = 2
"""Integers that may differ if their scores are unknown.

Two scores that are equal in eager may differ in compiled code, which changes an argmax."""
BLIND_SHARE = 0.5
"""Above this share of the result's size, eager's own error hides a compiler error."""


class Comparison(NamedTuple):
    """Comparison of one tensor: compiled error, eager error, allowed error."""

    where: str
    error: float
    eager_error: float
    allowed: float
    nonfinite: int
    eager_nonfinite: int
    blind: bool
    wrong: str = ""
    """Description of a difference that is not numeric, such as another shape."""

    @property
    def times(self) -> float:
        """The error as a multiple of the allowed error."""
        if self.wrong:
            return float("inf")
        return self.error / self.allowed if self.allowed else (float("inf") if self.error else 0.0)


def compare_tensors(
    torch: Any, where: str, compiled: Any, eager: Any, exact: Any | None
) -> Comparison:
    """Compares a compiled tensor with eager and, if available, with a higher precision."""
    if compiled.dtype != eager.dtype or compiled.shape != eager.shape:
        wrong = f"{where} is {_kind(compiled)} compiled and {_kind(eager)} eager"
        return Comparison(where, 0.0, 0.0, 0.0, 0, 0, False, wrong)
    usable = (
        exact is not None
        and exact.shape == eager.shape
        and exact.dtype.is_floating_point == eager.dtype.is_floating_point
    )
    exact = exact if usable else None
    if not (eager.dtype.is_floating_point or eager.dtype.is_complex):
        return _compare_integers(torch, where, compiled, eager, exact)
    # Only values that are finite in eager are compared numerically.
    finite, sound = torch.isfinite(compiled), torch.isfinite(eager)
    bad, eager_bad, news = int((~finite).sum()), int((~sound).sum()), int((~finite & sound).sum())
    if news:
        wrong = f"{news:,} values of {where} are NaN or infinite compiled and finite eager"
        return Comparison(where, 0.0, 0.0, 0.0, bad, eager_bad, False, wrong)
    one, two = _flat(torch, compiled)[_flat_mask(sound)], _flat(torch, eager)[_flat_mask(sound)]
    three = two if exact is None else _flat(torch, exact)[_flat_mask(sound)]
    if not one.numel():
        return Comparison(where, 0.0, 0.0, 0.0, bad, eager_bad, eager.numel() > 0)
    if not bool(torch.isfinite(three).all()):
        three, exact = two, None
    result = (
        _compare_with_exact(torch, where, eager, one, two, three)
        if exact is not None
        else _compare_with_eager(torch, where, eager, one, two)
    )
    return result._replace(nonfinite=bad, eager_nonfinite=eager_bad)


def find_worst(found: Sequence[Comparison]) -> Comparison:
    """The comparison whose error is the largest multiple of the allowed error."""
    return max(found, key=lambda one: one.times)


def tolerance(torch: Any, dtype: Any) -> float:
    """torch's tolerance for results of this precision."""
    if dtype in (torch.float64, torch.complex128):
        return DOUBLE
    return SINGLE if dtype in (torch.float32, torch.complex64) else HALF


def eager_only_share(torch: Any, result: Any) -> float:
    """Allowed relative error of a result if eager is the only reference."""
    return (
        EAGER_ONLY_TF32_SHARE
        if is_rough(torch, result)
        else EAGER_ONLY_SHARE[tolerance(torch, result.dtype)]
    )


def _compare_with_exact(
    torch: Any, where: str, result: Any, compiled: Any, eager: Any, exact: Any
) -> Comparison:
    """Applies the rule with a reference in a higher precision."""
    rough = result.dtype in (torch.float16, torch.bfloat16) or is_rough(torch, result)
    share, factor = tolerance(torch, result.dtype) / 10.0, _factor(eager.numel(), rough)
    (size, peak), (error, top), (eager_error, eager_top) = map(
        _mean_and_top, (exact, compiled - exact, eager - exact)
    )
    allowed = factor * eager_error + share * min(1.0, max(size, MIN_SIZE))
    most = ELEMENT_FACTOR * (factor * eager_top + share * max(peak, MIN_SIZE))
    blind = eager_error > BLIND_SHARE * max(size, MIN_SIZE)
    of_all = Comparison(where, error, eager_error, allowed, 0, 0, blind)
    of_one = Comparison(f"one value of {where}", top, eager_top, most, 0, 0, blind)
    return max(of_all, of_one, key=lambda one: one.times) if of_all.times <= 1.0 else of_all


def _compare_with_eager(
    torch: Any, where: str, result: Any, compiled: Any, eager: Any
) -> Comparison:
    """Applies the rule with eager as the only reference."""
    share, (size, peak), (error, top) = (
        eager_only_share(torch, result),
        _mean_and_top(eager),
        _mean_and_top(compiled - eager),
    )
    of_all = Comparison(where, error, 0.0, share * max(size, MIN_SIZE), 0, 0, False)
    of_one = Comparison(
        f"one value of {where}", top, 0.0, ELEMENT_FACTOR * share * max(peak, MIN_SIZE), 0, 0, False
    )
    return max(of_all, of_one, key=lambda one: one.times) if of_all.times <= 1.0 else of_all


def _mean_and_top(values: Any) -> tuple[float, float]:
    """The root mean square and the largest absolute value."""
    return float(values.square().mean().sqrt()), float(values.abs().max())


def _compare_integers(
    torch: Any, where: str, compiled: Any, eager: Any, exact: Any | None
) -> Comparison:
    """Compares integers and booleans by the share of different elements; booleans have no ties."""
    several = max(1, eager.numel())
    ties = (0 if eager.dtype is torch.bool else min(MAX_TIES, several // 8)) / several
    if exact is None:
        return Comparison(where, int((compiled != eager).sum()) / several, 0.0, ties, 0, 0, False)
    off, eager_off = (
        int((one != exact.to(one.dtype)).sum()) / several for one in (compiled, eager)
    )
    return Comparison(where, off, eager_off, max(2.0 * eager_off, ties), 0, 0, False)


def compare_argmax(
    torch: Any, where: str, compiled: Any, eager: Any, scores: tuple[Any, Any]
) -> Comparison | None:
    """Compares an argmax by its scores; None if the tensors are not the argmax of these scores.

    A place may differ if its two scores are closer than compiled and eager scores are."""
    mine, theirs = scores
    if (
        theirs.shape[:-1] != eager.shape
        or theirs.shape != mine.shape
        or not theirs.shape[-1]
        or not theirs.dtype.is_floating_point
    ):
        return None
    places, others = eager.to(torch.int64), compiled.to(torch.int64)
    if not torch.equal(theirs.argmax(-1), places) or not torch.equal(mine.argmax(-1), others):
        return None
    other = others != places
    if not bool(other.any()):
        return Comparison(where, 0.0, 0.0, 0.0, 0, 0, False)
    high, mine = theirs.to(torch.float64), mine.to(torch.float64)
    margin = (high.amax(-1) - high.gather(-1, others.unsqueeze(-1)).squeeze(-1))[other]
    apart = (high - mine).abs().amax(-1)[other]
    return Comparison(where, float(margin.max()), 0.0, float((2.0 * apart).max()), 0, 0, False)


def _factor(several: int, rough: bool) -> float:
    """Factor on eager's error: noise weighs more in few elements and in low precision."""
    if several <= 10:
        return 10.0
    return 3.0 if several < 1000 or rough else 2.0


def _flat(torch: Any, tensor: Any) -> Any:
    if tensor.dtype.is_complex:
        return torch.view_as_real(tensor.to(torch.complex128)).reshape(-1, 2)
    return tensor.to(torch.float64).reshape(-1)


def _flat_mask(mask: Any) -> Any:
    return mask.reshape(-1)


def _kind(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
