"""When two results are the same: the compiled error may not be much larger than eager's own, both against a higher precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compilewatch.numerics.tf32 import is_rough

SINGLE, HALF, DOUBLE = 1e-4, 1e-3, 1e-7
"""torch's tolerances by precision; a tenth of it is allowed on top of eager's error."""
ALONE = {SINGLE: 1e-4, HALF: 3e-2, DOUBLE: 1e-9}
"""What is allowed, as a share of the result's size, where eager alone is there to compare with."""
ALONE_TF32 = 1e-2
"""The same for float32 of a GPU where TF32 is allowed: one of the two may have kept eleven digits of its operands."""
SMALLEST = 1e-3
"""Of results smaller than this the size counts no more: what cancels out has no size, and its rounding has."""
PEAKS = 5.0
"""How many times more a single element may be off than the whole is on average."""
TIES = 2
"""Whole numbers that may differ where nothing says by how much one was preferred: two scores that are the same in eager need not be in
compiled code, and the largest one is another then."""
BLIND = 0.5
"""Beyond this share of the result's size eager's own error hides what a comparison would find."""


class Compared(NamedTuple):
    """One tensor: its error, that of eager, and how large the error may be."""

    where: str
    error: float
    eager_error: float
    allowed: float
    nonfinite: int
    eager_nonfinite: int
    blind: bool
    wrong: str = ""
    """What is wrong where it is no matter of numbers, such as another shape."""

    @property
    def times(self) -> float:
        """The error as a multiple of what is allowed."""
        if self.wrong:
            return float("inf")
        return self.error / self.allowed if self.allowed else (float("inf") if self.error else 0.0)


def compared(torch: Any, where: str, compiled: Any, eager: Any, exact: Any | None) -> Compared:
    """One tensor of the compiled result beside eager's and, where there is one, that of a higher precision."""
    if compiled.dtype != eager.dtype or compiled.shape != eager.shape:
        told = f"{where} is {_kind(compiled)} compiled and {_kind(eager)} eager"
        return Compared(where, 0.0, 0.0, 0.0, 0, 0, False, told)
    usable = (
        exact is not None
        and exact.shape == eager.shape
        and exact.dtype.is_floating_point == eager.dtype.is_floating_point
    )
    exact = exact if usable else None
    if not (eager.dtype.is_floating_point or eager.dtype.is_complex):
        return _counted(torch, where, compiled, eager, exact)
    # What is finite in eager is compared; only there does the rule mean anything.
    finite, sound = torch.isfinite(compiled), torch.isfinite(eager)
    bad, eager_bad, news = int((~finite).sum()), int((~sound).sum()), int((~finite & sound).sum())
    if news:
        told = f"{news:,} values of {where} are NaN or infinite compiled and finite eager"
        return Compared(where, 0.0, 0.0, 0.0, bad, eager_bad, False, told)
    one, two = _flat(torch, compiled)[_flat_mask(sound)], _flat(torch, eager)[_flat_mask(sound)]
    three = two if exact is None else _flat(torch, exact)[_flat_mask(sound)]
    if not one.numel():
        return Compared(where, 0.0, 0.0, 0.0, bad, eager_bad, eager.numel() > 0)
    if not bool(torch.isfinite(three).all()):
        three, exact = two, None
    ruled = (
        _ruled(torch, where, eager, one, two, three)
        if exact is not None
        else _ruled_alone(torch, where, eager, one, two)
    )
    return ruled._replace(nonfinite=bad, eager_nonfinite=eager_bad)


def worst(found: Sequence[Compared]) -> Compared:
    """The one whose error is the largest multiple of what is allowed."""
    return max(found, key=lambda one: one.times)


def tolerance(torch: Any, dtype: Any) -> float:
    """torch's tolerance for results of this precision."""
    if dtype in (torch.float64, torch.complex128):
        return DOUBLE
    return SINGLE if dtype in (torch.float32, torch.complex64) else HALF


def share_alone(torch: Any, result: Any) -> float:
    """What is allowed, as a share of the size, of a result like this where eager alone is there to compare with."""
    return ALONE_TF32 if is_rough(torch, result) else ALONE[tolerance(torch, result.dtype)]


def _ruled(torch: Any, where: str, result: Any, compiled: Any, eager: Any, exact: Any) -> Compared:
    """Both against a higher precision."""
    rough = result.dtype in (torch.float16, torch.bfloat16) or is_rough(torch, result)
    share, factor = tolerance(torch, result.dtype) / 10.0, _factor(eager.numel(), rough)
    (size, peak), (error, top), (eager_error, eager_top) = map(
        _mean_and_top, (exact, compiled - exact, eager - exact)
    )
    allowed = factor * eager_error + share * min(1.0, max(size, SMALLEST))
    most = PEAKS * (factor * eager_top + share * max(peak, SMALLEST))
    blind = eager_error > BLIND * max(size, SMALLEST)
    of_all = Compared(where, error, eager_error, allowed, 0, 0, blind)
    of_one = Compared(f"one value of {where}", top, eager_top, most, 0, 0, blind)
    return max(of_all, of_one, key=lambda one: one.times) if of_all.times <= 1.0 else of_all


def _ruled_alone(torch: Any, where: str, result: Any, compiled: Any, eager: Any) -> Compared:
    """Against eager itself."""
    share, (size, peak), (error, top) = (
        share_alone(torch, result),
        _mean_and_top(eager),
        _mean_and_top(compiled - eager),
    )
    of_all = Compared(where, error, 0.0, share * max(size, SMALLEST), 0, 0, False)
    of_one = Compared(
        f"one value of {where}", top, 0.0, PEAKS * share * max(peak, SMALLEST), 0, 0, False
    )
    return max(of_all, of_one, key=lambda one: one.times) if of_all.times <= 1.0 else of_all


def _mean_and_top(values: Any) -> tuple[float, float]:
    """The root of the mean square and the largest size."""
    return float(values.square().mean().sqrt()), float(values.abs().max())


def _counted(torch: Any, where: str, compiled: Any, eager: Any, exact: Any | None) -> Compared:
    """Whole numbers: as large a share may differ as eager's own differ from the higher precision, or a few ties. Flags have none."""
    several = max(1, eager.numel())
    ties = (0 if eager.dtype is torch.bool else min(TIES, several // 8)) / several
    if exact is None:
        return Compared(where, int((compiled != eager).sum()) / several, 0.0, ties, 0, 0, False)
    off, eager_off = (
        int((one != exact.to(one.dtype)).sum()) / several for one in (compiled, eager)
    )
    return Compared(where, off, eager_off, max(2.0 * eager_off, ties), 0, 0, False)


def picked(
    torch: Any, where: str, compiled: Any, eager: Any, scores: tuple[Any, Any]
) -> Compared | None:
    """Places of the largest score, where the scores are there too, compiled and eager: one may be another where the two that compete are
    no further apart than the scores themselves differ. None where they are not places of these scores."""
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
        return Compared(where, 0.0, 0.0, 0.0, 0, 0, False)
    high, mine = theirs.to(torch.float64), mine.to(torch.float64)
    margin = (high.amax(-1) - high.gather(-1, others.unsqueeze(-1)).squeeze(-1))[other]
    apart = (high - mine).abs().amax(-1)[other]
    return Compared(where, float(margin.max()), 0.0, float((2.0 * apart).max()), 0, 0, False)


def _factor(several: int, rough: bool) -> float:
    """How many times eager's error the compiled one may be: noise weighs more in a few values and where few digits are kept."""
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
